#include "daemon/recall/index.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "daemon/recall/analogy/analogies.h"
#include "daemon/recall/shelf.h"
#include "daemon/recall/vote.h"

namespace efimd::recall {

struct Index::Impl {
  Limits limits;
  std::map<std::string, Shelf, std::less<>> shelves;  ///< by project
  std::uint64_t uses = 0;
  std::size_t files_dropped = 0;
  std::vector<Dropped> dropped;

  Shelf& use(std::string_view project) {
    auto found = shelves.find(project);
    if (found == shelves.end()) found = shelves.try_emplace(std::string(project)).first;
    found->second.used = ++uses;
    return found->second;
  }
  Shelf* find(std::string_view project) {
    const auto found = shelves.find(project);
    return found == shelves.end() ? nullptr : &found->second;
  }
  std::vector<Match> matches(const Asked& asked, const Where& where, Analogies& analogies) const {
    Search search(asked);
    const auto shelf = shelves.find(where.project);
    if (shelf == shelves.end())
      search.scan_own(where.path);
    else
      shelf->second.search(search, where.path);
    std::vector<Match> found = search.take();
    const std::vector<Match> alike = analogies.find(asked, where.path);
    const auto middle = found.insert(found.end(), alike.begin(), alike.end());
    std::ranges::inplace_merge(found, middle, std::ranges::greater{}, &Match::weight);
    return found;
  }
  void limit_bytes();
};

/// The project used longest ago loses its oldest batch until all is within the budget.
void Index::Impl::limit_bytes() {
  std::size_t bytes = 0;
  std::vector<std::pair<const std::string*, Shelf*>> by_use;
  for (auto& [project, shelf] : shelves) {
    bytes += shelf.bytes();
    by_use.emplace_back(&project, &shelf);
  }
  std::ranges::sort(by_use, {}, [](const auto& each) { return each.second->used; });
  for (const auto& [project, shelf] : by_use)
    while (bytes > limits.budget_bytes) {
      const std::size_t before = shelf->bytes();
      std::vector<std::string> paths = shelf->drop_batch();
      if (paths.empty()) break;
      files_dropped += paths.size();
      dropped.push_back({*project, std::move(paths)});
      bytes -= before - shelf->bytes();
    }
}

Index::Index(Limits limits) : impl_(std::make_unique<Impl>()) { impl_->limits = limits; }
Index::~Index() = default;
Index::Index(Index&&) noexcept = default;
Index& Index::operator=(Index&&) noexcept = default;

void Index::set_document(const Where& where, text::SnapshotPtr snapshot) {
  Shelf& shelf = impl_->use(where.project);
  shelf.set_document(where.path, std::move(snapshot));
  shelf.limit_session(impl_->limits.session_bytes);
}

void Index::close_document(const Where& where) {
  if (Shelf* shelf = impl_->find(where.project)) shelf->close_document(where.path);
}

void Index::accept(const Where& where, std::string_view document, std::size_t at,
                   std::string_view text) {
  Shelf& shelf = impl_->use(where.project);
  const std::size_t before = std::min(at, SessionText::kBeforeBytes);
  const std::string whole =
      std::string(document.substr(std::min(at, document.size()) - before, before)).append(text);
  shelf.session().accepted(where.path, whole, before, text.size());
  shelf.limit_session(impl_->limits.session_bytes);
}

void Index::add_files(std::string_view project, BatchPtr batch) {
  impl_->use(project).add(batch);
  impl_->limit_bytes();
}

BatchPtr Merge::made(const Between& between) const {
  std::vector<File> files;
  for (const HeldBatch& held : from_)
    for (std::size_t file = 0; file < held.states.size(); ++file)
      if (held.states[file] != HeldBatch::State::kRemoved)
        files.push_back({held.batch->path(file), std::string(held.batch->text(file))});
  return make_batch(files, between);
}

std::optional<Merge> Index::merge_wanted() {
  for (auto& [project, shelf] : impl_->shelves) {
    std::vector<HeldBatch> from = shelf.to_merge();
    if (from.empty()) continue;
    Merge merge;
    merge.project_ = project;
    merge.from_ = std::move(from);
    return merge;
  }
  return std::nullopt;
}

void Index::take_merged(const Merge& merge, const BatchPtr& made) {
  Shelf* shelf = impl_->find(merge.project_);
  if (shelf == nullptr) return;
  shelf->take_merged(merge.from_, made);
  impl_->limit_bytes();
}

std::vector<Dropped> Index::take_dropped() { return std::exchange(impl_->dropped, {}); }

void Index::add_file(const Where& where, std::string_view text) {
  const File file{std::string(where.path), std::string(text)};
  add_files(where.project, make_batch(std::span(&file, 1)));
}

void Index::remove_file(const Where& where) {
  if (Shelf* shelf = impl_->find(where.project)) shelf->remove_file(where.path);
}

void Index::forget(const Where& where) {
  if (Shelf* shelf = impl_->find(where.project)) shelf->forget(where.path);
}

void Index::forget_everywhere(std::string_view path) {
  for (auto& [project, shelf] : impl_->shelves) shelf.forget(path);
}

void Index::remove_project(std::string_view project) {
  const auto found = impl_->shelves.find(project);
  if (found != impl_->shelves.end()) impl_->shelves.erase(found);
}

std::vector<Candidate> Index::find(const Query& query) const {
  const Asked asked(query.text, query.cursor);
  Analogies analogies;
  return candidates_of(asked, impl_->matches(asked, query.where, analogies), query.candidates_max);
}

Continuation Index::draft(const Query& query, std::size_t bytes_max) const {
  const Asked asked(query.text, query.cursor);
  Analogies analogies;
  std::vector<Match> matches = impl_->matches(asked, query.where, analogies);
  // At the start of a line the next line is asked for, not whether there is one.
  if (asked.place() == Place::kStart)
    std::erase_if(matches, [](const Match& match) { return match.continuation.empty(); });
  const auto [best, share, votes] = best_supported(matches);
  if (best == nullptr) return {};
  std::string_view rest = best->text.substr(best->goes_on, bytes_max);
  // In the own file, a draft ends before the cursor's own line.
  if (best->source == Source::kThisFile && best->goes_on < asked.line_begin())
    rest = rest.substr(0, asked.line_begin() - best->goes_on);
  return {std::string(rest), share, best->agreed, votes};
}

Usage Index::usage() const {
  Usage usage{.projects = impl_->shelves.size(), .files_dropped = impl_->files_dropped};
  for (const auto& [project, shelf] : impl_->shelves) {
    usage.files += shelf.file_count();
    usage.documents += shelf.document_count();
    usage.text_bytes += shelf.text_bytes();
    usage.bytes += shelf.bytes();
  }
  return usage;
}

}  // namespace efimd::recall
