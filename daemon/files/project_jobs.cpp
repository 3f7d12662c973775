#include "daemon/files/project_jobs.h"

#include <algorithm>
#include <utility>

#include "daemon/files/exclusions.h"

namespace efimd::service {

void ProjectJobs::add(ProjectJob job) {
  using Kind = ProjectJob::Kind;
  const std::lock_guard lock(mutex_);
  if (job.kind == Kind::kChanged && (jobs_.size() >= kNoticesMax || says_what_is_ignored(job.file)))
    job.kind = Kind::kLook;
  const bool waits =
      job.kind != Kind::kMerge && std::ranges::any_of(jobs_, [&](const ProjectJob& other) {
        return other.root == job.root && other.kind != Kind::kMerge &&
               (other.kind == Kind::kLook ||
                (job.kind == Kind::kChanged && other.file == job.file));
      });
  if (!waits) jobs_.push_back(std::move(job));
  changed_.notify_all();
}

std::optional<ProjectJob> ProjectJobs::take() {
  std::unique_lock lock(mutex_);
  const auto next = [&] {
    return std::ranges::find_if(
        jobs_, [&](const ProjectJob& job) { return !at_work_.contains(job.root); });
  };
  changed_.wait(lock, [&] { return stopped_ || next() != jobs_.end(); });
  if (stopped_) return std::nullopt;
  const auto place = next();
  ProjectJob job = std::move(*place);
  jobs_.erase(place);
  return job;
}

void ProjectJobs::begin(const std::string& root) {
  const std::lock_guard lock(mutex_);
  at_work_[root] = {Clock::now()};
}

bool ProjectJobs::step(const std::string& root) {
  const std::lock_guard lock(mutex_);
  if (const auto found = at_work_.find(root); found != at_work_.end())
    found->second = {Clock::now()};
  return !stopped_;
}

void ProjectJobs::end(const std::string& root) {
  const std::lock_guard lock(mutex_);
  at_work_.erase(root);
  changed_.notify_all();
}

void ProjectJobs::wait_for(const std::string& root) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = at_work_.find(root);
    if (stopped_ || found == at_work_.end()) return;
    const Clock::time_point late = found->second.last_step + stall_max_;
    if (Clock::now() >= late) {
      found->second.stalled = true;
      return;
    }
    changed_.wait_until(lock, late);
  }
}

bool ProjectJobs::is_stalled(const std::string& root) const {
  const std::lock_guard lock(mutex_);
  const auto found = at_work_.find(root);
  return found != at_work_.end() && found->second.stalled;
}

void ProjectJobs::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool ProjectJobs::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace efimd::service
