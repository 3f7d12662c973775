#include "daemon/completion/mailbox.h"

#include <utility>

namespace efimd::completion {

Job::Job(Request request_, std::function<void(Outcome)> done_)
    : request(std::move(request_)),
      done(std::move(done_)),
      chained_(request.stop, [source = stop]() mutable { source.request_stop(); }) {}

bool Mailbox::post(JobPtr& job) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || jobs_ >= jobs_max_) return false;
    stop_newest(job->request.document);
    newest_.insert_or_assign(job->request.document, job->stop);
    messages_.emplace_back(std::move(job));
    ++jobs_;
    next_.request_stop();
  }
  arrived_.notify_one();
  return true;
}

void Mailbox::close_document(DocumentKey document) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    stop_newest(document);
    messages_.emplace_back(std::move(document));
    next_.request_stop();
  }
  arrived_.notify_one();
}

bool Mailbox::post(OpenedDocument opened) { return post_other(std::move(opened)); }

bool Mailbox::post(Focused focused) { return post_other(std::move(focused)); }
bool Mailbox::post(Dismissal dismissal) { return post_other(std::move(dismissal)); }

bool Mailbox::post(Forgetting forgetting) { return post_other(std::move(forgetting)); }

bool Mailbox::post(IndexChange change) { return post_other(std::move(change)); }

bool Mailbox::post_other(Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    messages_.push_back(std::move(message));
    next_.request_stop();
  }
  arrived_.notify_one();
  return true;
}

std::stop_token Mailbox::until_next() {
  const std::lock_guard lock(mutex_);
  next_ = std::stop_source();
  if (closed_ || !messages_.empty()) next_.request_stop();
  return next_.get_token();
}

bool Mailbox::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, time, [&] { return closed_ || !messages_.empty(); });
}

std::optional<Message> Mailbox::take() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return closed_ || !messages_.empty(); });
  if (messages_.empty()) return std::nullopt;
  Message message = std::move(messages_.front());
  messages_.pop_front();
  if (std::holds_alternative<JobPtr>(message)) --jobs_;
  return message;
}

void Mailbox::finished(const Job& job) {
  const std::lock_guard lock(mutex_);
  const auto found = newest_.find(job.request.document);
  if (found != newest_.end() && found->second == job.stop) newest_.erase(found);
}

void Mailbox::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (auto& [document, stop] : newest_) stop.request_stop();
    next_.request_stop();
  }
  arrived_.notify_all();
}

void Mailbox::stop_newest(const DocumentKey& document) {
  if (const auto found = newest_.find(document); found != newest_.end())
    found->second.request_stop();
}

}  // namespace efimd::completion
