#pragma once

#include <chrono>
#include <ctime>

namespace efimd {

/// CPU time of the calling thread, for std::chrono. A call takes some 0.2 us.
struct ThreadClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<ThreadClock>;

  static time_point now() noexcept {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time_point(std::chrono::seconds(time.tv_sec) + duration(time.tv_nsec));
  }
};

}  // namespace efimd
