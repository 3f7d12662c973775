#pragma once

#include <algorithm>
#include <chrono>
#include <string>

namespace efimd::remote {

/// Whether the server is worth asking. While it is not, requests fail at once, so that nobody waits
/// for it, and it is looked at now and then.
///
///   H-1  A failure closes it for kPauseMin, and for twice as long after each further one, at most
///        kPauseMax.
///   H-2  When the pause is over, an answer of /v1/models opens it on trial; another failure goes on
///        with H-1. Only a completion ends the trial: some servers name models and answer nothing.
///
/// Thread: one. The clock is the caller's.
class Health {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kPauseMin = std::chrono::milliseconds(500);
  static constexpr auto kPauseMax = std::chrono::milliseconds(10'000);

  bool is_open() const { return open_; }
  /// When to look at the server; only if it is closed.
  Clock::time_point look_at() const { return look_at_; }
  const std::string& trouble() const { return trouble_; }

  void failed(std::string trouble, Clock::time_point now) {
    open_ = false;
    trouble_ = std::move(trouble);
    look_at_ = now + pause_;
    pause_ = std::min<std::chrono::milliseconds>(pause_ * 2, kPauseMax);
  }
  void answered_look() { open_ = true; }
  void completed() {
    trouble_.clear();
    pause_ = kPauseMin;
  }

 private:
  bool open_ = true;
  std::chrono::milliseconds pause_ = kPauseMin;
  Clock::time_point look_at_;
  std::string trouble_;
};

}  // namespace efimd::remote
