#include "daemon/server/project_reader.h"

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "daemon/files/notebook_file.h"
#include "daemon/files/reading_time.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

/// How long a destructor waits for the thread. A stalled file system may hold it for minutes.
constexpr std::chrono::milliseconds kFarewell{500};

using Job = ProjectJob;
using completion::MakingWay;
using Project = KnownProjects::Project;
using Files = std::vector<std::pair<std::string, FileStamp>>;

/// On Linux this is the calling thread's own; reading ahead must not slow down the user.
void lower_priority() {
#ifdef __linux__
  static_cast<void>(setpriority(PRIO_PROCESS, 0, 10));
#endif
}

}  // namespace

struct ProjectReader::State : std::enable_shared_from_this<ProjectReader::State> {
  State(Exclusions exclusions, Deliver deliver, Settings settings)
      : exclusions_(std::move(exclusions)),
        deliver_(std::move(deliver)),
        limits_(settings.limits),
        threads_(settings.threads ? std::move(settings.threads) : std::make_shared<FileThreads>()),
        requests_(std::move(settings.requests)),
        jobs_(settings.stall_max) {}

  void run();
  void ask(Job job);
  void merge(recall::Merge merge);
  void forget(const recall::Dropped& dropped);
  void leave(const std::string& root);
  void stop();
  bool wait_until_done(std::chrono::milliseconds time);
  std::vector<ProjectStatus> status() const;
  const KnownProjects& projects() const { return projects_; }

 private:
  void serve(Job job);
  void work(const Job& job);
  void look(const Job& job, MakingWay& way);
  void look_at_file(const Job& job, MakingWay& way);
  void read(const std::string& root, const Files& files, MakingWay& way);
  bool has_room(const std::string& root, const Files::value_type& file, bool is_late);
  void remove(const std::string& root, const std::string& path);
  void deliver(ProjectUpdate update);
  void deliver_batch(const std::string& root, recall::BatchPtr batch);

  const Exclusions exclusions_;
  const Deliver deliver_;
  const ProjectLimits limits_;
  const std::shared_ptr<FileThreads> threads_;
  const std::shared_ptr<completion::InFlight> requests_;
  ProjectJobs jobs_;

  KnownProjects projects_;
  std::mutex delivering_;  ///< held while deliver_ runs, so that leave() and stop() outlast it
  std::mutex mutex_;       ///< guards all below
  std::condition_variable changed_;
  bool done_ = false;
};

void ProjectReader::State::run() {
  lower_priority();
  while (auto job = jobs_.take()) try {
      serve(std::move(*job));
    } catch (const std::bad_alloc&) {
      // The project is read when it is looked at again.
    }
  const std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void ProjectReader::State::serve(Job job) {
  if (!projects_.has(job.root)) return;  // left meanwhile
  if (job.kind == Job::Kind::kMerge) {
    MakingWay way(requests_);
    return deliver({.project = job.root,
                    .files = job.merge->made([&] { way.between_pieces(); }),
                    .removed = {},
                    .merge = job.merge});
  }
  const std::string root = job.root;
  jobs_.begin(root);
  // Work that is dropped has ended, too.
  std::shared_ptr<State> self = shared_from_this();
  std::shared_ptr<void> end(nullptr, [self, root](void*) { self->jobs_.end(root); });
  const std::uint64_t key = std::hash<std::string>()(root);
  static_cast<void>(
      threads_->post(key, [self, end = std::move(end), job = std::move(job)] { self->work(job); }));
  jobs_.wait_for(root);
}

/// A thread that is made for each job may read what was made since the daemon began (sandbox.h).
void ProjectReader::State::work(const Job& job) {
  lower_priority();
  MakingWay way(requests_);
  job.kind == Job::Kind::kLook ? look(job, way) : look_at_file(job, way);
  deliver({.project = job.root, .files = nullptr, .removed = {}, .is_last = true});
}

void ProjectReader::State::merge(recall::Merge merge) {
  Job job{.kind = Job::Kind::kMerge, .root = merge.project()};
  job.merge = std::make_shared<const recall::Merge>(std::move(merge));
  jobs_.add(std::move(job));
}

/// They are read again at the next look.
void ProjectReader::State::forget(const recall::Dropped& dropped) {
  projects_.note(dropped.project, [&](Project& project) {
    for (const std::string& path : dropped.paths) project.files.drop(file_of_text(path));
  });
}

void ProjectReader::State::ask(Job job) {
  if (job.kind == Job::Kind::kLook) projects_.add(job.root, job.nested);
  jobs_.add(std::move(job));
}

/// What is read of it meanwhile is not delivered.
void ProjectReader::State::leave(const std::string& root) {
  const std::lock_guard delivering(delivering_);
  projects_.leave(root);
}

void ProjectReader::State::stop() {
  jobs_.stop();
  const std::lock_guard lock(delivering_);
}

bool ProjectReader::State::wait_until_done(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return done_; });
}

std::vector<ProjectStatus> ProjectReader::State::status() const {
  std::vector<ProjectStatus> rows = projects_.status();
  for (ProjectStatus& row : rows) row.stalled = jobs_.is_stalled(row.project);
  return rows;
}

void ProjectReader::State::deliver(ProjectUpdate update) {
  const std::lock_guard delivering(delivering_);
  if (jobs_.is_stopped() || !projects_.has(update.project)) return;
  update.merger = [weak = weak_from_this()](recall::Merge merge) {
    if (const auto state = weak.lock()) state->merge(std::move(merge));
  };
  update.dropper = [weak = weak_from_this()](const recall::Dropped& dropped) {
    if (const auto state = weak.lock()) state->forget(dropped);
  };
  deliver_(std::move(update));
}

void ProjectReader::State::look(const Job& job, MakingWay& way) {
  ProjectLimits limits = limits_;
  projects_.note(job.root, [&](Project& project) {
    project.status.reading = true;
    limits.nested = project.nested;
  });
  const auto stopped = [&] {
    way.between_pieces();
    return !jobs_.step(job.root) || !projects_.has(job.root);
  };
  const ProjectListing listing = list_project(job.root, exclusions_, limits, stopped);
  ProjectUpdate gone{.project = job.root, .files = nullptr, .removed = {}};
  projects_.note(job.root, [&](Project& project) {
    project.status.left_out = listing.left_out;
    for (const std::string& path : project.files.paths())
      if (!listing.files.contains(path) && project.files.forget(path))
        gone.removed.push_back(text_path(path));
  });
  if (!gone.removed.empty()) deliver(std::move(gone));
  Files files = projects_.news(job.root, listing);
  std::stable_partition(files.begin(), files.end(), [&](const auto& file) {
    return recall::family_of(text_path(file.first)) == job.family;
  });
  read(job.root, files, way);
  projects_.note(job.root, [](Project& project) { project.status.reading = false; });
}

void ProjectReader::State::read(const std::string& root, const Files& files, MakingWay& way) {
  const ReadingTime time(limits_);
  const auto between = [&] {
    way.between_pieces();
    static_cast<void>(jobs_.step(root));
  };
  recall::Gathering gathering(between);
  for (const auto& file : files) {
    between();
    if (jobs_.is_stopped() || !projects_.has(root)) break;
    const bool is_late = time.is_over();
    std::optional<std::string> text;
    if (has_room(root, file, is_late)) text = read_code(file.first);
    if (!text) {
      remove(root, file.first);  // what it was is wrong by now, if it was known
      continue;
    }
    projects_.note(
        root, [&](Project& project) { project.files.know(file.first, file.second, text->size()); });
    deliver_batch(root, gathering.add({text_path(file.first), std::move(*text)}));
  }
  for (recall::BatchPtr& batch : gathering.rest()) deliver_batch(root, std::move(batch));
}

bool ProjectReader::State::has_room(const std::string& root, const Files::value_type& file,
                                    bool is_late) {
  bool room = false;
  projects_.note(root, [&](Project& project) {
    // Most of a notebook is no code: how much is known once it is read.
    const std::uint64_t bytes = is_notebook(file.first) ? 0 : file.second.bytes;
    room = !is_late && project.files.bytes_without(file.first) + bytes <= limits_.bytes;
    if (!room) project.status.left_out = is_late ? "time" : "bytes";
  });
  return room;
}

void ProjectReader::State::remove(const std::string& root, const std::string& path) {
  bool was_known = false;
  projects_.note(root, [&](Project& project) { was_known = project.files.forget(path); });
  if (was_known) deliver({.project = root, .files = nullptr, .removed = {text_path(path)}});
}

void ProjectReader::State::deliver_batch(const std::string& root, recall::BatchPtr batch) {
  if (batch) deliver({.project = root, .files = std::move(batch), .removed = {}});
}

void ProjectReader::State::look_at_file(const Job& job, MakingWay& way) {
  bool was_folder = false, was_file = false, nested = false;
  projects_.note(job.root, [&](Project& project) {
    was_folder = project.files.has_below(job.file), was_file = project.files.has(job.file);
    nested = project.nested;
  });
  if (!nested && is_in_nested_repository(job.root, job.file)) return remove(job.root, job.file);
  if (const auto stamp = stamp_of(job.root, job.file, exclusions_))
    return read(job.root, {{job.file, *stamp}}, way);
  std::error_code error;
  const bool is_here = was_file && fs::exists(fs::symlink_status(job.file, error));
  // Of a folder that came or went, editors tell nothing but its name; git may track what it ignores.
  if (was_folder || is_here || is_listed_folder(job.root, job.file, exclusions_))
    return look(job, way);
  remove(job.root, job.file);
}

ProjectReader::ProjectReader(Exclusions exclusions, Deliver deliver, Settings settings)
    : state_(
          std::make_shared<State>(std::move(exclusions), std::move(deliver), std::move(settings))) {
  // The thread keeps the state alive: it may outlive this object where the file system stalls.
  std::thread([state = state_] { state->run(); }).detach();
}

ProjectReader::~ProjectReader() {
  state_->stop();
  static_cast<void>(state_->wait_until_done(kFarewell));
}

void ProjectReader::look_at(const fs::path& root, std::string_view family, bool nested) {
  state_->ask({.kind = Job::Kind::kLook,
               .root = root.generic_string(),
               .family = std::string(family),
               .nested = nested,
               .file = {}});
}

void ProjectReader::changed(const fs::path& file) {
  const std::string path = file.generic_string();
  for (std::string& root : state_->projects().roots_of(path))
    state_->ask({.kind = path.empty() ? Job::Kind::kLook : Job::Kind::kChanged,
                 .root = std::move(root),
                 .family = recall::family_of(text_path(path)),
                 .file = path});
}

void ProjectReader::leave(const std::string& root) { state_->leave(root); }

std::vector<ProjectStatus> ProjectReader::status() const { return state_->status(); }

std::vector<std::string> ProjectReader::files(const std::string& root) const {
  return state_->projects().files(root);
}

}  // namespace efimd::service
