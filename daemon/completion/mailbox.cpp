#include "daemon/completion/mailbox.h"

#include <iterator>
#include <type_traits>
#include <utility>

namespace efimd::completion {

namespace {

constexpr std::size_t kOfJobs = 0;  ///< JobPtr's index in Message
static_assert(std::is_same_v<std::variant_alternative_t<kOfJobs, Message>, JobPtr>);

/// Whose place a message takes; nullopt for one that stands for itself. The user is in one document,
/// so all of what says where is one.
std::optional<DocumentKey> document_of(const Message& message) {
  if (const auto* closed = std::get_if<DocumentKey>(&message)) return *closed;
  if (const auto* opened = std::get_if<OpenedDocument>(&message)) return opened->document;
  if (const auto* dismissal = std::get_if<Dismissal>(&message)) return dismissal->document;
  if (const auto* change = std::get_if<IndexChange>(&message)) return change->document;
  if (std::holds_alternative<Focused>(message)) return DocumentKey();
  return std::nullopt;
}

}  // namespace

Job::Job(Request request_, std::function<void(Outcome)> done_)
    : request(std::move(request_)),
      done(std::move(done_)),
      chained_(request.stop, [source = stop]() mutable { source.request_stop(); }) {}

bool Mailbox::post(JobPtr& job) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    const DocumentKey document = job->request.document;
    const Place place{kOfJobs, document};
    const auto older = places_.find(place);
    if (older == places_.end() && jobs_ >= jobs_max_) return false;
    stop_newest(document);
    newest_.insert_or_assign(document, job->stop);
    Messages& line = line_of(*job);
    line.emplace_back(std::move(job));
    if (older == places_.end()) {
      ++jobs_;
    } else {
      job = std::move(std::get<JobPtr>(*older->second));
      line_of(*job).erase(older->second);
    }
    places_[place] = std::prev(line.end());
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
    put(document, &document);
    next_.request_stop();
  }
  arrived_.notify_one();
}

bool Mailbox::post(OpenedDocument opened) { return post_other(std::move(opened)); }

bool Mailbox::post(Focused focused) { return post_other(std::move(focused)); }
bool Mailbox::post(Dismissal dismissal) { return post_other(std::move(dismissal)); }

bool Mailbox::post(Forgetting forgetting) { return post_other(std::move(forgetting)); }

bool Mailbox::post(IndexChange change) { return post_other(std::move(change)); }

bool Mailbox::post(HeadAnswer answer) { return post_other(std::move(answer)); }

void Mailbox::put(Message message, const DocumentKey* document) {
  if (document != nullptr) {
    const auto [place, fresh] = places_.try_emplace({message.index(), *document});
    if (!fresh) messages_.erase(place->second);
    messages_.push_back(std::move(message));
    place->second = std::prev(messages_.end());
    return;
  }
  messages_.push_back(std::move(message));
}

bool Mailbox::post_other(Message message) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    const std::optional<DocumentKey> document = document_of(message);
    put(std::move(message), document ? &*document : nullptr);
    next_.request_stop();
  }
  arrived_.notify_one();
  return true;
}

std::stop_token Mailbox::until_next() {
  const std::lock_guard lock(mutex_);
  next_ = std::stop_source();
  if (closed_ || !is_empty()) next_.request_stop();
  return next_.get_token();
}

bool Mailbox::wait(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, time, [&] { return closed_ || !is_empty(); });
}

std::optional<Message> Mailbox::take() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return closed_ || !is_empty(); });
  if (is_empty()) return std::nullopt;
  Messages& line = messages_.empty() ? patient_ : messages_;
  const auto first = line.begin();
  Message message = std::move(*first);
  const std::optional<DocumentKey> document = std::holds_alternative<JobPtr>(message)
                                                  ? std::get<JobPtr>(message)->request.document
                                                  : document_of(message);
  if (document)
    if (const auto place = places_.find({message.index(), *document});
        place != places_.end() && place->second == first)
      places_.erase(place);
  line.erase(first);
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
