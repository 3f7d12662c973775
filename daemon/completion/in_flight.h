#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace efimd::completion {

/// The requests that somebody waits for, so that work for which nobody waits can make way.
///
/// Thread: any.
class InFlight {
 public:
  void began();
  void ended();
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }
  /// Until there is none, at most `most`.
  void wait_for_none(std::chrono::nanoseconds most);

 private:
  std::atomic<int> count_ = 0;  ///< written under the lock
  std::mutex mutex_;
  std::condition_variable none_;
};

/// Work in small pieces that makes way for requests between any two of them.
///
/// Limits: it waits kWaitPerWork times as long as it works, and kWaitMin longer. So it always ends,
/// however many requests there are.
/// Thread: its owner's.
class MakingWay {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kWaitPerWork = 4;
  static constexpr std::chrono::milliseconds kWaitMin{500};
  /// Of one wait; then a piece of work is done.
  static constexpr std::chrono::milliseconds kWaitMax{100};

  /// `requests` may be null: then it never waits.
  explicit MakingWay(std::shared_ptr<InFlight> requests);
  /// Call it after each piece, which should take a millisecond at most.
  void between_pieces();
  Clock::duration waited() const { return waited_; }

 private:
  const std::shared_ptr<InFlight> requests_;
  const Clock::time_point begin_ = Clock::now();
  Clock::duration waited_{0};
};

}  // namespace efimd::completion
