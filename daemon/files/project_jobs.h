#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/recall/index.h"

namespace efimd::service {

struct ProjectJob {
  enum class Kind { kLook, kChanged, kMerge };
  Kind kind = Kind::kLook;
  std::string root;
  std::string family = {};  ///< kLook
  bool nested = false;      ///< kLook: with other repositories below the root
  std::string file = {};    ///< kChanged
  std::shared_ptr<const recall::Merge> merge = nullptr;
};

/// What is to be done for projects, and at which of them somebody is at work. A project at which nothing
/// moves has stalled: its jobs wait, and those of others go on.
///
/// Thread: any. take() and wait_for() wait, and return at once after stop().
/// Limits: kNoticesMax changes wait; more become one new look.
class ProjectJobs {
 public:
  static constexpr std::size_t kNoticesMax = 256;

  /// A project has stalled after `stall_max` without a step.
  explicit ProjectJobs(std::chrono::milliseconds stall_max) : stall_max_(stall_max) {}

  void add(ProjectJob job);
  /// The next job of a project at which nobody is at work; nullopt at the end.
  std::optional<ProjectJob> take();
  void begin(const std::string& root);
  /// The work made a step; whether it is to go on.
  bool step(const std::string& root);
  void end(const std::string& root);
  /// Until the work at the project ends or stalls.
  void wait_for(const std::string& root);
  bool is_stalled(const std::string& root) const;
  void stop();
  bool is_stopped() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Work {
    Clock::time_point last_step;
    bool stalled = false;
  };

  const std::chrono::milliseconds stall_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ProjectJob> jobs_;
  std::map<std::string, Work> at_work_;
  bool stopped_ = false;
};

}  // namespace efimd::service
