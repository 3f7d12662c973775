#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <variant>

#include "daemon/completion/completion.h"

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
using Message = std::variant<JobPtr, DocumentKey>;  ///< a request, or a document that was closed

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

  /// Waits; nullopt once closed and empty.
  std::optional<Message> take();
  /// The job is about to be answered: no newer one needs to stop it.
  void finished(const Job& job);

  /// Fires the stop of all jobs; take() goes on until all are taken.
  void close();

 private:
  void stop_newest(const DocumentKey& document);

  const std::size_t jobs_max_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Message> messages_;
  std::size_t jobs_ = 0;
  std::map<DocumentKey, std::stop_source> newest_;  ///< of those not finished
  bool closed_ = false;
};

}  // namespace efimd::completion
