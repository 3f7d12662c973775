#pragma once

#include <chrono>

#include "base/thread_clock.h"
#include "daemon/files/project_files.h"

namespace efimd::service {

/// Time that a listing or a reading has taken since it was made.
///
/// Thread: the one that lists or reads.
class ReadingTime {
 public:
  explicit ReadingTime(const ProjectLimits& limits)
      : processor_end_(ThreadClock::now() + limits.processor_time),
        end_(std::chrono::steady_clock::now() + limits.time) {}
  bool is_over() const {
    return ThreadClock::now() > processor_end_ || std::chrono::steady_clock::now() > end_;
  }

 private:
  ThreadClock::time_point processor_end_;
  std::chrono::steady_clock::time_point end_;
};

}  // namespace efimd::service
