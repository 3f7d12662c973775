#include "daemon/files/head_keeper.h"

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "daemon/context/head.h"
#include "daemon/context/project_paths.h"
#include "daemon/files/packages.h"
#include "daemon/files/project_files.h"
#include "daemon/files/script_aliases.h"
#include "daemon/recall/batch.h"
#include "daemon/syntax/grammar.h"
#include "lsp/uri.h"

namespace efimd::service {

namespace {

using completion::DocumentKey;
using completion::HeadQuestion;

using context::FilePartsPtr;

/// The path from the repository's root, of which `question` has that of its own file; else from the
/// project's.
std::string name_in(const HeadQuestion& question, const std::string& path) {
  std::string root = question.home.project + "/";
  if (!question.file.path.empty() && question.home.path.ends_with("/" + question.file.path))
    root = question.home.path.substr(0, question.home.path.size() - question.file.path.size());
  return path.starts_with(root) ? path.substr(root.size()) : path;
}

/// What prompts show of the text.
std::string_view window_of(const HeadQuestion& question) {
  const std::string_view text = question.snapshot->bytes();
  const std::size_t begin = std::min(question.window_begin, text.size());
  return text.substr(begin, std::max(begin, question.window_end) - begin);
}

}  // namespace

struct HeadKeeper::State : std::enable_shared_from_this<HeadKeeper::State> {
  explicit State(Settings settings) : settings_(std::move(settings)) {}

  void ask(HeadQuestion question);
  void project_changed(const std::string& project);
  void forget(const std::string& path);
  void forget_all();
  void use(const std::string& path);
  void stop();

 private:
  struct Known {
    HeadQuestion question;
    std::vector<std::string> uses = {};  ///< paths of other files
    context::HeadPtr head = nullptr;     ///< the last that was delivered
    std::size_t window_begin = 0;        ///< for which that was made
    bool is_due = true;
    std::uint64_t asked = 0;  ///< order of asking
  };
  struct Outline {
    FileStamp stamp;
    std::uint64_t serial = 0;  ///< of the editor's text; 0: the file's
    FilePartsPtr parts;
    std::uint64_t used = 0;
  };

  /// A question, and what was purged when it was taken.
  struct Due {
    HeadQuestion question;
    std::uint64_t purges = 0;
  };

  bool is_stopped();
  void begin_work();  ///< under the lock
  void work(const std::string& project);
  std::optional<Due> take_due(const std::string& project);
  void make(const Due& due);
  context::ProjectPathsPtr paths_of(const std::string& project);
  FilePartsPtr parts_of(const std::string& path, const Due& due);
  FilePartsPtr keep(const std::string& path, Outline outline, std::uint64_t purges);
  text::SnapshotPtr open_text_of(const std::string& path);
  /// The other files that a document uses: paths, and of those with declarations also their names.
  struct Uses {
    std::vector<std::string> paths = {};
    std::map<std::string, std::string> by_name = {};
  };
  void finish(const Due& due, Uses uses, std::span<const context::Source> sources);

  const Settings settings_;
  std::mutex calling_;  ///< held while files or deliver run, so that stop() outlasts them
  std::mutex mutex_;    ///< guards all below; no file system is asked under it
  std::map<DocumentKey, Known> known_;
  std::map<std::string, context::ProjectPathsPtr> paths_;
  std::uint64_t changes_ = 0;  ///< of projects: paths that were asked for before one are not kept
  std::set<std::string> forgotten_;  ///< paths of files that were purged
  std::uint64_t purges_ = 0;         ///< of everything
  std::uint64_t asked_ = 0;
  std::set<std::string> at_work_;  ///< projects; one thread for each
  bool stopped_ = false;
  std::map<std::string, Outline> outlines_;
  std::uint64_t uses_ = 0;
};

void HeadKeeper::State::ask(HeadQuestion question) {
  const std::lock_guard lock(mutex_);
  if (!question.snapshot) {
    known_.erase(question.document);
    return;
  }
  for (auto& [document, known] : known_)
    if (std::ranges::find(known.uses, question.home.path) != known.uses.end()) known.is_due = true;
  Known& known = known_[question.document];
  known.question = std::move(question);
  known.is_due = true;
  known.asked = ++asked_;
  if (known_.size() > kDocumentsMax)
    known_.erase(
        std::ranges::min_element(known_, {}, [](const auto& entry) { return entry.second.asked; }));
  begin_work();
}

void HeadKeeper::State::project_changed(const std::string& project) {
  const std::lock_guard lock(mutex_);
  paths_.erase(project);
  ++changes_;
  for (auto& [document, known] : known_) known.is_due |= known.question.home.project == project;
  begin_work();
}

void HeadKeeper::State::forget(const std::string& path) {
  const std::lock_guard lock(mutex_);
  forgotten_.insert(path);
  outlines_.erase(path);
  std::erase_if(known_, [&](const auto& entry) {
    const Known& known = entry.second;
    return known.question.home.path == path ||
           std::ranges::find(known.uses, path) != known.uses.end();
  });
}

void HeadKeeper::State::forget_all() {
  const std::lock_guard lock(mutex_);
  known_.clear();
  outlines_.clear();
  ++purges_;
}

void HeadKeeper::State::use(const std::string& path) {
  const std::lock_guard lock(mutex_);
  forgotten_.erase(path);
}

void HeadKeeper::State::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    known_.clear();
  }
  const std::lock_guard lock(calling_);
}

bool HeadKeeper::State::is_stopped() {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

void HeadKeeper::State::begin_work() {
  if (stopped_) return;
  for (const auto& [document, known] : known_) {
    const std::string& project = known.question.home.project;
    if (!known.is_due || !at_work_.insert(project).second) continue;
    const std::uint64_t key = std::hash<std::string>()(project);
    if (!settings_.threads->post(key,
                                 [self = shared_from_this(), project] { self->work(project); }))
      at_work_.erase(project);
  }
}

std::optional<HeadKeeper::State::Due> HeadKeeper::State::take_due(const std::string& project) {
  const std::lock_guard lock(mutex_);
  const auto due = std::ranges::find_if(known_, [&](const auto& entry) {
    return entry.second.is_due && entry.second.question.home.project == project;
  });
  if (due == known_.end() || stopped_) {
    at_work_.erase(project);
    return std::nullopt;
  }
  due->second.is_due = false;
  return Due{due->second.question, purges_};
}

void HeadKeeper::State::work(const std::string& project) try {
  while (const auto due = take_due(project)) make(*due);
} catch (const std::bad_alloc&) {
  // This head is not made; the next question begins work anew.
  const std::lock_guard lock(mutex_);
  at_work_.erase(project);
}

context::ProjectPathsPtr HeadKeeper::State::paths_of(const std::string& project) {
  std::uint64_t changes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = paths_.find(project); found != paths_.end()) return found->second;
    changes = changes_;
  }
  std::vector<std::string> files;
  {
    const std::lock_guard calling(calling_);
    if (!is_stopped()) files = settings_.files(project);
  }
  if (files.empty()) return nullptr;
  auto packages = packages_of(files);
  auto aliases = script_aliases(files);
  auto paths = std::make_shared<const context::ProjectPaths>(
      project, std::move(files), std::move(packages), std::move(aliases));
  const std::lock_guard lock(mutex_);
  if (changes == changes_) paths_[project] = paths;
  return paths;
}

text::SnapshotPtr HeadKeeper::State::open_text_of(const std::string& path) {
  const std::lock_guard lock(mutex_);
  for (const auto& [document, known] : known_)
    if (known.question.home.path == path) return known.question.snapshot;
  return nullptr;
}

FilePartsPtr HeadKeeper::State::parts_of(const std::string& path, const Due& due) {
  // Whether it may be read can change, so it is asked each time.
  const auto stamp = stamp_of(due.question.home.project, path, settings_.exclusions);
  if (!stamp) return nullptr;
  const text::SnapshotPtr open = open_text_of(path);
  const std::uint64_t serial = open ? open->serial() : 0;
  {
    const std::lock_guard lock(mutex_);
    if (forgotten_.contains(path)) return nullptr;
    const auto known = outlines_.find(path);
    if (known != outlines_.end() && known->second.stamp == *stamp &&
        known->second.serial == serial) {
      known->second.used = ++uses_;
      return known->second.parts;
    }
  }
  const auto text = open ? std::optional(std::string(open->bytes())) : read_code(path);
  if (!text) return nullptr;
  Outline outline{*stamp, serial,
                  std::make_shared<const context::FileParts>(context::parts_of(path, *text))};
  return keep(path, std::move(outline), due.purges);
}

FilePartsPtr HeadKeeper::State::keep(const std::string& path, Outline outline,
                                     std::uint64_t purges) {
  const std::lock_guard lock(mutex_);
  if (purges_ != purges || forgotten_.contains(path)) return nullptr;
  outline.used = ++uses_;
  FilePartsPtr made = outline.parts;
  outlines_[path] = std::move(outline);
  if (outlines_.size() > kOutlinesMax)
    outlines_.erase(std::ranges::min_element(outlines_, {},
                                             [](const auto& entry) { return entry.second.used; }));
  return made;
}

void HeadKeeper::State::make(const Due& due) {
  const HeadQuestion& question = due.question;
  const std::string& own = question.home.path;
  const std::string_view text = question.snapshot->bytes();
  if (syntax::grammar_of(own) == syntax::Grammar::kNone || text.size() > recall::kFileBytesMax)
    return finish(due, {}, {});
  const context::ProjectPathsPtr paths = paths_of(question.home.project);
  if (!paths) return;
  const std::vector<context::ReadFile> files = context::read_used(
      text, own, *paths, [&](const std::string& path) { return parts_of(path, due); });
  std::vector<context::Source> sources;
  Uses uses;
  for (const context::ReadFile& read : files) {
    uses.paths.push_back(read.file.path);
    if (!read.parts || read.parts->declarations.empty()) continue;
    context::UsedFile file = read.file;
    file.path = name_in(question, file.path);
    uses.by_name.emplace(file.path, read.file.path);
    sources.push_back({std::move(file), &read.parts->declarations});
  }
  finish(due, std::move(uses), sources);
}

void HeadKeeper::State::finish(const Due& due, Uses uses,
                               std::span<const context::Source> sources) {
  const HeadQuestion& question = due.question;
  const std::string_view window = window_of(question);
  context::Head head =
      context::make_head(window, sources, std::min(kHeadBytesMax, question.bytes_max));
  context::HeadPtr made;
  std::vector<std::string> shown;
  for (const context::Slot& slot : head.slots)
    shown.push_back(lsp::file_uri(uses.by_name.at(slot.path)));
  {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(question.document);
    if (found == known_.end() || due.purges != purges_) return;
    Known& known = found->second;
    const bool purged_meanwhile = std::ranges::any_of(
        uses.by_name, [&](const auto& named) { return forgotten_.contains(named.second); });
    known.is_due |= purged_meanwhile;
    if (purged_meanwhile) return;
    known.uses = std::move(uses.paths);
    // The first answer is always delivered: the document may show a head of an earlier time.
    // Where the window moved, all behind the head is new anyway.
    const bool moved =
        std::exchange(known.window_begin, question.window_begin) != question.window_begin;
    if (known.head && (moved ? *known.head == head
                             : !context::is_worth_changing(*known.head, head, sources, window)))
      return;
    made = known.head = std::make_shared<const context::Head>(std::move(head));
  }
  const std::lock_guard calling(calling_);
  if (!is_stopped()) settings_.deliver({question.document, std::move(made), std::move(shown)});
}

HeadKeeper::HeadKeeper(Settings settings) : state_(std::make_shared<State>(std::move(settings))) {}

HeadKeeper::~HeadKeeper() { state_->stop(); }

void HeadKeeper::ask(HeadQuestion question) { state_->ask(std::move(question)); }

void HeadKeeper::project_changed(const std::string& project) { state_->project_changed(project); }

void HeadKeeper::forget(const std::string& path) { state_->forget(path); }

void HeadKeeper::forget_all() { state_->forget_all(); }

void HeadKeeper::use(const std::string& path) { state_->use(path); }

void HeadKeeper::stop() { state_->stop(); }

}  // namespace efimd::service
