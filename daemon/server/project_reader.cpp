#include "daemon/server/project_reader.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

/// How long a destructor waits for the thread. A stalled file system may hold it for minutes.
constexpr std::chrono::milliseconds kFarewell{500};

struct Job {
  enum class Kind { kLook, kChanged, kMerge };
  Kind kind = Kind::kLook;
  std::string root;
  std::string family;  ///< kLook
  std::string file;    ///< kChanged
  std::shared_ptr<const recall::Merge> merge = nullptr;
};

using Files = std::vector<std::pair<std::string, FileStamp>>;

/// On Linux this is the calling thread's own; reading ahead must not slow down the user.
void lower_priority() {
#ifdef __linux__
  static_cast<void>(setpriority(PRIO_PROCESS, 0, 10));
#endif
}

}  // namespace

struct ProjectReader::State : std::enable_shared_from_this<ProjectReader::State> {
  State(Exclusions exclusions, Deliver deliver, ProjectLimits limits,
        std::shared_ptr<FileThreads> threads)
      : exclusions_(std::move(exclusions)),
        deliver_(std::move(deliver)),
        limits_(limits),
        threads_(std::move(threads)) {}

  void run();
  void ask(Job job);
  void merge(recall::Merge merge);
  std::vector<std::string> roots_of(const std::string& file) const;
  void stop();
  bool wait_until_done(std::chrono::milliseconds time);
  std::vector<ProjectStatus> status() const;
  std::vector<std::string> files(const std::string& root) const;

 private:
  /// The known files of a project. Only the files thread changes it.
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

  void serve(const Job& job);
  void on_file_thread(const std::function<void()>& work);
  void look(const Job& job);
  void look_at_file(const Job& job);
  void read(const std::string& root, const Files& files);
  bool has_room(const std::string& root, const FileStamp& stamp, Clock::time_point deadline);
  void remove(const std::string& root, const std::string& path);
  Files news(const std::string& root, const ProjectListing& listing) const;
  void note(const std::string& root, const std::function<void(Project&)>& change);
  bool is_stopped() const;
  void deliver(ProjectUpdate update);
  void deliver_batch(const std::string& root, recall::BatchPtr batch);

  const Exclusions exclusions_;
  const Deliver deliver_;
  const ProjectLimits limits_;
  const std::shared_ptr<FileThreads> threads_;

  std::mutex delivering_;     ///< held while deliver_ runs, so that stop() outlasts it
  mutable std::mutex mutex_;  ///< guards all below; the file system is never asked under it
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::map<std::string, Project> projects_;
  bool stopped_ = false;
  bool done_ = false;
};

/// A thread that is made for each job may read what was made since the daemon began (sandbox.h).
void ProjectReader::State::on_file_thread(const std::function<void()>& work) {
  if (!threads_) return work();
  auto promise = std::make_shared<std::promise<void>>();
  const auto ended = promise->get_future();
  // Dropped work breaks its promise, which ends the wait, too.
  static_cast<void>(threads_->post(0, [&work, promise = std::move(promise)] {
    lower_priority();
    work();
  }));
  ended.wait();
}

void ProjectReader::State::run() {
  lower_priority();
  while (true) {
    Job job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || !jobs_.empty(); });
      if (stopped_) break;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    serve(job);
  }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void ProjectReader::State::serve(const Job& job) {
  if (job.kind == Job::Kind::kMerge)
    return deliver(
        {.project = job.root, .files = job.merge->made(), .removed = {}, .merge = job.merge});
  on_file_thread([&] { job.kind == Job::Kind::kLook ? look(job) : look_at_file(job); });
  deliver({.project = job.root, .files = nullptr, .removed = {}, .is_last = true});
}

void ProjectReader::State::merge(recall::Merge merge) {
  const std::lock_guard lock(mutex_);
  Job job{.kind = Job::Kind::kMerge, .root = merge.project(), .family = {}, .file = {}};
  job.merge = std::make_shared<const recall::Merge>(std::move(merge));
  jobs_.push_back(std::move(job));
  changed_.notify_all();
}

void ProjectReader::State::ask(Job job) {
  const std::lock_guard lock(mutex_);
  if (job.kind == Job::Kind::kLook) projects_[job.root].status.project = job.root;
  if (job.kind == Job::Kind::kChanged &&
      (jobs_.size() >= kNoticesMax || fs::path(job.file).filename() == ".gitignore"))
    job.kind = Job::Kind::kLook;
  const bool waits = std::ranges::any_of(jobs_, [&](const Job& other) {
    return other.root == job.root && other.kind != Job::Kind::kMerge &&
           (other.kind == Job::Kind::kLook ||
            (job.kind == Job::Kind::kChanged && other.file == job.file));
  });
  if (!waits) jobs_.push_back(std::move(job));
  changed_.notify_all();
}

/// The innermost known project with the file; all projects for an empty name.
std::vector<std::string> ProjectReader::State::roots_of(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> roots;
  for (const auto& [root, project] : projects_) {
    if (file.empty()) {
      roots.push_back(root);
    } else if (file.starts_with(root + "/") &&
               (roots.empty() || root.size() > roots.front().size())) {
      roots.assign(1, root);
    }
  }
  return roots;
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

std::vector<std::string> ProjectReader::State::files(const std::string& root) const {
  const std::lock_guard lock(mutex_);
  const auto project = projects_.find(root);
  if (project == projects_.end()) return {};
  std::vector<std::string> paths;
  for (const auto& [path, stamp] : project->second.files) paths.push_back(path);
  return paths;
}

bool ProjectReader::State::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void ProjectReader::State::note(const std::string& root,
                                const std::function<void(Project&)>& change) {
  const std::lock_guard lock(mutex_);
  change(projects_.at(root));
}

void ProjectReader::State::deliver(ProjectUpdate update) {
  const std::lock_guard delivering(delivering_);
  if (is_stopped()) return;
  update.merger = [weak = weak_from_this()](recall::Merge merge) {
    if (const auto state = weak.lock()) state->merge(std::move(merge));
  };
  deliver_(std::move(update));
}

/// Files that are new or were changed.
Files ProjectReader::State::news(const std::string& root, const ProjectListing& listing) const {
  const std::lock_guard lock(mutex_);
  Files found;
  const auto& files = projects_.at(root).files;
  for (const auto& [path, stamp] : listing.files) {
    const auto known = files.find(path);
    if (known == files.end() || known->second != stamp) found.emplace_back(path, stamp);
  }
  return found;
}

void ProjectReader::State::look(const Job& job) {
  note(job.root, [](Project& project) { project.status.reading = true; });
  const auto stopped = [&] { return is_stopped(); };
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
  const auto deadline = Clock::now() + limits_.time;
  recall::Gathering gathering;
  for (const auto& file : files) {
    if (!has_room(root, file.second, deadline)) break;
    auto text = read_code(file.first);
    if (!text) {
      remove(root, file.first);
      continue;
    }
    note(root, [&](Project& project) { project.know(file.first, file.second); });
    deliver_batch(root, gathering.add({file.first, std::move(*text)}));
  }
  for (recall::BatchPtr& batch : gathering.rest()) deliver_batch(root, std::move(batch));
}

bool ProjectReader::State::has_room(const std::string& root, const FileStamp& stamp,
                                    Clock::time_point deadline) {
  bool room = false;
  note(root, [&](Project& project) {
    if (stopped_) return;
    const bool late = Clock::now() > deadline;
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

void ProjectReader::State::deliver_batch(const std::string& root, recall::BatchPtr batch) {
  if (batch) deliver({.project = root, .files = std::move(batch), .removed = {}});
}

void ProjectReader::State::look_at_file(const Job& job) {
  const auto stamp = stamp_of(job.root, job.file, exclusions_);
  if (stamp) return read(job.root, {{job.file, *stamp}});
  remove(job.root, job.file);
}

ProjectReader::ProjectReader(Exclusions exclusions, Deliver deliver, ProjectLimits limits,
                             std::shared_ptr<FileThreads> threads)
    : state_(std::make_shared<State>(std::move(exclusions), std::move(deliver), limits,
                                     std::move(threads))) {
  // The thread keeps the state alive: it may outlive this object where the file system stalls.
  std::thread([state = state_] { state->run(); }).detach();
}

ProjectReader::~ProjectReader() {
  state_->stop();
  static_cast<void>(state_->wait_until_done(kFarewell));
}

void ProjectReader::look_at(const fs::path& root, std::string_view family) {
  state_->ask({.kind = Job::Kind::kLook,
               .root = root.generic_string(),
               .family = std::string(family),
               .file = {}});
}

void ProjectReader::changed(const fs::path& file) {
  const std::string path = file.generic_string();
  for (std::string& root : state_->roots_of(path))
    state_->ask({.kind = path.empty() ? Job::Kind::kLook : Job::Kind::kChanged,
                 .root = std::move(root),
                 .family = recall::family_of(path),
                 .file = path});
}

std::vector<ProjectStatus> ProjectReader::status() const { return state_->status(); }

std::vector<std::string> ProjectReader::files(const std::string& root) const {
  return state_->files(root);
}

}  // namespace efimd::service
