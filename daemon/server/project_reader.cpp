#include "daemon/server/project_reader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

using SteadyClock = std::chrono::steady_clock;

/// How long a destructor waits for the thread. A stalled file system may hold it for minutes.
constexpr std::chrono::milliseconds kFarewell{500};
/// The first batch of a family is small, so that there is something to find soon.
constexpr std::size_t kFirstBatchBytes = std::size_t{256} * 1024;
constexpr std::size_t kLaterBatchBytes = recall::kBatchBytesMax - recall::kFileBytesMax;

struct Job {
  enum class Kind { kLook, kChanged };
  Kind kind = Kind::kLook;
  std::string root;
  std::string family;  ///< kLook
  std::string file;    ///< kChanged
};

using Files = std::vector<std::pair<std::string, FileStamp>>;

/// Texts of one family that wait for their batch.
struct Waiting {
  std::string family;
  std::vector<recall::File> files;
  std::size_t bytes = 0;
  std::size_t bytes_max = kFirstBatchBytes;
};

Waiting& family_in(std::vector<Waiting>& waiting, std::string_view path) {
  const std::string family = recall::family_of(path);
  const auto found = std::ranges::find(waiting, family, &Waiting::family);
  if (found != waiting.end()) return *found;
  waiting.push_back({.family = family, .files = {}});
  return waiting.back();
}

bool changes_ignoring(const std::string& file) { return fs::path(file).filename() == ".gitignore"; }

}  // namespace

struct ProjectReader::State {
  State(Exclusions exclusions, Deliver deliver, ProjectLimits limits)
      : exclusions_(std::move(exclusions)), deliver_(std::move(deliver)), limits_(limits) {}

  void run();
  void ask(Job job);
  void leave(const std::string& root);
  void stop();
  bool wait_until_done(std::chrono::milliseconds time);
  std::vector<ProjectStatus> status() const;

 private:
  /// What is known of a project's files. Only the files thread changes it.
  struct Project {
    std::map<std::string, FileStamp> files;
    ProjectStatus status;

    void know(const std::string& path, const FileStamp& stamp) {
      forget(path);
      files[path] = stamp;
      status.files = files.size();
      status.bytes += stamp.bytes;
    }
    bool forget(const std::string& path) {
      const auto found = files.find(path);
      if (found == files.end()) return false;
      status.bytes -= found->second.bytes;
      files.erase(found);
      status.files = files.size();
      return true;
    }
  };

  void look(const Job& job);
  void look_at_file(const Job& job);
  void read(const std::string& root, const Files& files);
  bool has_room(const std::string& root, const FileStamp& stamp, SteadyClock::time_point deadline);
  void remove(const std::string& root, const std::string& path);
  Files news(const std::string& root, const ProjectListing& listing) const;
  void note(const std::string& root, const std::function<void(Project&)>& change);
  bool is_left(const std::string& root) const;
  void deliver(ProjectUpdate update);
  void deliver_batch(const std::string& root, Waiting& waiting);

  const Exclusions exclusions_;
  const Deliver deliver_;
  const ProjectLimits limits_;

  std::mutex delivering_;     ///< held while deliver_ runs, so that stop() outlasts it
  mutable std::mutex mutex_;  ///< guards all below; the file system is never asked under it
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<std::string, Project> projects_;
  bool stopped_ = false;
  bool done_ = false;
};

void ProjectReader::State::run() {
#ifdef __linux__
  // On Linux this is the calling thread's own; reading ahead must not slow down the user.
  static_cast<void>(setpriority(PRIO_PROCESS, 0, 10));
#endif
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
      if (stopped_) break;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    job.kind == Job::Kind::kLook ? look(job) : look_at_file(job);
    deliver({.project = job.root, .files = nullptr, .removed = {}, .is_last = true});
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void ProjectReader::State::ask(Job job) {
  const std::lock_guard lock(mutex_);
  if (job.kind == Job::Kind::kLook) {
    projects_[job.root].status.project = job.root;
  } else if (!projects_.contains(job.root)) {
    return;
  }
  if (job.kind == Job::Kind::kChanged &&
      (jobs_.size() >= kNoticesMax || changes_ignoring(job.file)))
    job.kind = Job::Kind::kLook;
  const bool waits = std::ranges::any_of(jobs_, [&](const Job& other) {
    return other.root == job.root && (other.kind == Job::Kind::kLook || other.file == job.file) &&
           (job.kind == Job::Kind::kChanged || other.kind == Job::Kind::kLook);
  });
  if (!waits) jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void ProjectReader::State::leave(const std::string& root) {
  const std::lock_guard lock(mutex_);
  projects_.erase(root);
  std::erase_if(jobs_, [&](const Job& job) { return job.root == root; });
}

void ProjectReader::State::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  const std::lock_guard lock(delivering_);
}

bool ProjectReader::State::wait_until_done(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return done_; });
}

std::vector<ProjectStatus> ProjectReader::State::status() const {
  const std::lock_guard lock(mutex_);
  std::vector<ProjectStatus> rows;
  for (const auto& [root, project] : projects_) rows.push_back(project.status);
  return rows;
}

bool ProjectReader::State::is_left(const std::string& root) const {
  const std::lock_guard lock(mutex_);
  return stopped_ || !projects_.contains(root);
}

void ProjectReader::State::note(const std::string& root,
                                const std::function<void(Project&)>& change) {
  const std::lock_guard lock(mutex_);
  const auto found = projects_.find(root);
  if (found == projects_.end()) return;
  change(found->second);
}

void ProjectReader::State::deliver(ProjectUpdate update) {
  const std::lock_guard delivering(delivering_);
  if (is_left(update.project)) return;
  deliver_(std::move(update));
}

/// Files that are new or were changed.
Files ProjectReader::State::news(const std::string& root, const ProjectListing& listing) const {
  const std::lock_guard lock(mutex_);
  Files found;
  const auto project = projects_.find(root);
  if (project == projects_.end()) return found;
  for (const auto& [path, stamp] : listing.files) {
    const auto known = project->second.files.find(path);
    if (known == project->second.files.end() || known->second != stamp)
      found.emplace_back(path, stamp);
  }
  return found;
}

void ProjectReader::State::look(const Job& job) {
  note(job.root, [](Project& project) { project.status.reading = true; });
  const auto stopped = [&] { return is_left(job.root); };
  const ProjectListing listing = list_project(job.root, exclusions_, limits_, stopped);
  ProjectUpdate gone{.project = job.root, .files = nullptr, .removed = {}};
  note(job.root, [&](Project& project) {
    project.status.left_out = listing.left_out;
    for (const auto& [path, stamp] : project.files)
      if (!listing.files.contains(path)) gone.removed.push_back(path);
    for (const std::string& path : gone.removed) project.forget(path);
  });
  if (!gone.removed.empty()) deliver(std::move(gone));
  Files files = news(job.root, listing);
  std::stable_partition(files.begin(), files.end(), [&](const auto& file) {
    return recall::family_of(file.first) == job.family;
  });
  read(job.root, files);
  note(job.root, [](Project& project) { project.status.reading = false; });
}

void ProjectReader::State::read(const std::string& root, const Files& files) {
  const auto deadline = SteadyClock::now() + limits_.time;
  std::vector<Waiting> waiting;  // in the order that families come in
  for (const auto& file : files) {
    if (!has_room(root, file.second, deadline)) break;
    auto text = read_code(file.first);
    if (!text) {
      remove(root, file.first);
      continue;
    }
    note(root, [&](Project& project) { project.know(file.first, file.second); });
    Waiting& family = family_in(waiting, file.first);
    family.bytes += text->size();
    family.files.push_back({file.first, std::move(*text)});
    if (family.bytes >= family.bytes_max) deliver_batch(root, family);
  }
  for (Waiting& rest : waiting) deliver_batch(root, rest);
}

bool ProjectReader::State::has_room(const std::string& root, const FileStamp& stamp,
                                    SteadyClock::time_point deadline) {
  bool room = false;
  note(root, [&](Project& project) {
    if (stopped_) return;
    const bool late = SteadyClock::now() > deadline;
    room = !late && project.status.bytes + stamp.bytes <= limits_.bytes;
    if (!room) project.status.left_out = late ? "time" : "bytes";
  });
  return room;
}

void ProjectReader::State::remove(const std::string& root, const std::string& path) {
  bool was_known = false;
  note(root, [&](Project& project) { was_known = project.forget(path); });
  if (was_known) deliver({.project = root, .files = nullptr, .removed = {path}});
}

void ProjectReader::State::deliver_batch(const std::string& root, Waiting& waiting) {
  if (waiting.files.empty()) return;
  deliver({.project = root, .files = recall::make_batch(waiting.files), .removed = {}});
  waiting = {.family = waiting.family, .files = {}, .bytes_max = kLaterBatchBytes};
}

void ProjectReader::State::look_at_file(const Job& job) {
  const auto stamp = stamp_of(job.root, job.file, exclusions_);
  if (stamp) return read(job.root, {{job.file, *stamp}});
  remove(job.root, job.file);
}

ProjectReader::ProjectReader(Exclusions exclusions, Deliver deliver, ProjectLimits limits)
    : state_(std::make_shared<State>(std::move(exclusions), std::move(deliver), limits)) {
  // The thread keeps the state alive: it may outlive this object where the file system stalls.
  std::thread([state = state_] { state->run(); }).detach();
}

ProjectReader::~ProjectReader() {
  state_->stop();
  static_cast<void>(state_->wait_until_done(kFarewell));
}

void ProjectReader::look_at(const fs::path& root, std::string_view family) {
  state_->ask({Job::Kind::kLook, root.generic_string(), std::string(family), {}});
}

void ProjectReader::changed(const fs::path& root, const fs::path& file) {
  state_->ask({Job::Kind::kChanged, root.generic_string(), {}, file.generic_string()});
}

void ProjectReader::leave(const fs::path& root) { state_->leave(root.generic_string()); }

std::vector<ProjectStatus> ProjectReader::status() const { return state_->status(); }

}  // namespace efimd::service
