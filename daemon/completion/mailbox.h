#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "daemon/completion/documents/session_memory.h"
#include "daemon/completion/request.h"
#include "daemon/recall/index.h"

namespace efimd::completion {

/// A request on its way to its answer. `stop` fires with the request's own token, too.
struct Job {
  Job(Request request_, std::function<void(Outcome)> done_);

  Request request;
  std::function<void(Outcome)> done;
  std::stop_source stop;

 private:
  std::stop_callback<std::function<void()>> chained_;
};

using JobPtr = std::unique_ptr<Job>;
/// What is held of a document, or of all when `uri` is empty, is to be dropped; then `done` is
/// called.
struct Forgetting {
  std::string uri;
  std::function<void()> done;
};
/// The user came to this document.
struct Focused {
  DocumentKey document;
};
/// The text that recall may show has changed. Runs on the engine thread, and must be short.
struct IndexChange {
  std::function<void(recall::Index&)> apply;
};
/// A request; a document that was closed; one that was opened; one that the user came to; what is not
/// wanted there; what is to be forgotten; a change of the project's text.
using Message =
    std::variant<JobPtr, DocumentKey, OpenedDocument, Focused, Dismissal, Forgetting, IndexChange>;

/// Requests on their way to the engine thread. The newest for a document wins: posting it fires the
/// stop of the one before, whether that waits here or is being worked on. Stopped jobs stay in line
/// and are answered by the engine thread.
///
/// A lock and not BoundedQueue: what wins must be decided together with what is queued.
///
/// Thread: post() and close_document() from any; take() and finished() from the engine thread.
class Mailbox {
 public:
  explicit Mailbox(std::size_t jobs_max) : jobs_max_(jobs_max) {}

  /// False, and `job` untouched, when full.
  [[nodiscard]] bool post(JobPtr& job);
  void close_document(DocumentKey document);
  /// What is no request and no closing; false, and nothing done, once closed.
  bool post(OpenedDocument opened);
  bool post(Focused focused);
  bool post(Dismissal dismissal);
  bool post(Forgetting forgetting);
  bool post(IndexChange change);

  /// Fires when the next message arrives, or one waits already: for work in idle time.
  std::stop_token until_next();
  /// Whether a message arrives within `time`, or the mailbox is closed.
  bool wait(std::chrono::milliseconds time);
  /// Waits; nullopt once closed and empty.
  std::optional<Message> take();
  /// The job is about to be answered: no newer one needs to stop it.
  void finished(const Job& job);

  /// Fires the stop of all jobs; take() goes on until all are taken.
  void close();

 private:
  void stop_newest(const DocumentKey& document);
  bool post_other(Message message);

  const std::size_t jobs_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> messages_;
  std::size_t jobs_ = 0;
  std::map<DocumentKey, std::stop_source> newest_;  ///< of those not finished
  std::stop_source next_;                           ///< of until_next()
  bool closed_ = false;
};

}  // namespace efimd::completion
