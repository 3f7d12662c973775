#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
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
/// All state of a document, or of all when `uri` is empty, is to be dropped; then `done` is called.
struct Forgetting {
  std::vector<std::string> uris;
  std::function<void()> done;
};
/// The user came to this document.
struct Focused {
  DocumentKey document;
};
/// The text that recall may show has changed. Runs on the engine thread, and must be short.
struct IndexChange {
  std::function<void(recall::Index&)> apply;
  std::optional<DocumentKey> document = {};  ///< set: a newer change of it takes this one's place
};
/// A request, a closed document, an opened one, one that the user came to, a dismissal, something
/// to forget, a change of the project's text, or a head.
using Message = std::variant<JobPtr, DocumentKey, OpenedDocument, Focused, Dismissal, Forgetting,
                             IndexChange, HeadAnswer>;

/// Requests on their way to the engine thread. The newest for a document wins: posting it fires the
/// stop of the one before, which is in work, or hands it back because it waits here. Those that say
/// so (Request::waits) are taken when no other message is there. Of other messages about a document,
/// the newest of a kind stands for those before it. So what waits grows with the open documents
/// only.
///
/// A lock and not a plain queue, because the choice of the winner needs the queue's contents.
///
/// Thread: post() and close_document() from any; take() and finished() from the engine thread.
class Mailbox {
 public:
  explicit Mailbox(std::size_t jobs_max) : jobs_max_(jobs_max) {}

  /// False, and `job` untouched, when full. Else `job` is what waited for the same document, for the
  /// caller to answer, or null.
  [[nodiscard]] bool post(JobPtr& job);
  void close_document(DocumentKey document);
  /// Posts anything but a request or a closing. False, and nothing is done, after close().
  bool post(OpenedDocument opened);
  bool post(Focused focused);
  bool post(Dismissal dismissal);
  bool post(Forgetting forgetting);
  bool post(IndexChange change);
  bool post(HeadAnswer answer);

  /// Fires when the next message arrives, or if one waits already; for work in idle time.
  std::stop_token until_next();
  /// Whether a message arrives within `time`, or the mailbox is closed.
  bool wait(std::chrono::milliseconds time);
  /// Waits; nullopt once closed and empty.
  std::optional<Message> take();
  /// The job is about to be answered, so no newer one needs to stop it.
  void finished(const Job& job);

  /// Fires the stop of all jobs; take() goes on until all are taken.
  void close();

 private:
  void stop_newest(const DocumentKey& document);
  /// The messages that a newer one replaces: kind, and owner.
  using Place = std::pair<std::size_t, DocumentKey>;
  using Messages = std::list<Message>;
  bool post_other(Message message);
  /// `message` in the place that it takes, as the last; under the lock, as the rest.
  void put(Message message, const DocumentKey* document);
  bool is_empty() const { return messages_.empty() && patient_.empty(); }
  Messages& line_of(const Job& job) { return job.request.waits ? patient_ : messages_; }

  const std::size_t jobs_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  Messages messages_;
  Messages patient_;                                ///< jobs that wait for all of these
  std::map<Place, Messages::iterator> places_;      ///< of those that a newer one may replace
  std::size_t jobs_ = 0;                            ///< in both
  std::map<DocumentKey, std::stop_source> newest_;  ///< of those not finished
  std::stop_source next_;                           ///< of until_next()
  bool closed_ = false;
};

}  // namespace efimd::completion
