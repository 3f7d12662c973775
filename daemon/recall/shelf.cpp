#include "daemon/recall/shelf.h"

#include <algorithm>
#include <utility>

namespace efimd::recall {

namespace {

/// What an insertion or deletion of the whole text is: another text, nothing that was deleted.
bool replaces_all(const text::Edit& edit, std::size_t text_bytes) {
  return edit.begin == 0 && edit.removed >= text_bytes && edit.inserted > 0;
}

std::size_t bytes_of(const HeldBatch& held) {
  return sizeof(held) + held.states.size() + held.batch->bytes();
}

/// An edit that removes more may say again what it removed: a formatter replaces whole texts.
constexpr std::size_t kReplacedBytesMin = 4096;

/// Of a file's entry in the map of files.
std::size_t bytes_of(const std::string& path) {
  constexpr std::size_t kEntryBytes = 64;
  return sizeof(path) + path.size() + kEntryBytes;
}

}  // namespace

void Shelf::set_document(std::string_view path, text::SnapshotPtr snapshot) {
  const auto [found, is_new] = documents_.try_emplace(std::string(path));
  Document& document = found->second;
  if (is_new)
    document.family = family_of(path);
  else if (document.snapshot != snapshot)
    note_deleted(path, *document.snapshot, *snapshot);
  if (document.snapshot != snapshot) {
    const text::SnapshotPtr before = std::exchange(document.snapshot, std::move(snapshot));
    stand_for_file(path, document, before.get());
  }
  if (!is_new) std::erase(by_use_, &*found);
  by_use_.insert(by_use_.begin(), &*found);
}

/// What the document and its file both say is searched in the file: looking it up costs less than
/// reading the document through. `before`: an older version whose differences are known.
void Shelf::stand_for_file(std::string_view path, Document& document,
                           const text::Snapshot* before) {
  const auto found = files_.find(std::string(path));
  if (found == files_.end()) return;
  const auto& [held, file] = found->second;
  const text::Snapshot& now = *document.snapshot;
  const std::string_view saved = held->batch->text(file);
  HeldBatch::State& state = held->states[file];
  if (saved == now.bytes()) {
    state = now.recent_edits().empty() ? HeldBatch::State::kSearched : HeldBatch::State::kEdited;
    document.searched = Document::Searched::kFile;
    document.differences = {};
    return;
  }
  state = HeldBatch::State::kChanged;
  document.searched = Document::Searched::kDifferences;
  const auto since =
      before == nullptr ? text::Snapshot::Since{} : now.edits_since(before->serial());
  const bool replaced = std::ranges::any_of(
      since.edits, [](const text::Edit& edit) { return edit.removed > kReplacedBytesMin; });
  if (!since.complete || replaced) {
    document.differences = text::Differences::between(saved, now.bytes());
    return;
  }
  for (const text::Edit& edit : since.edits) document.differences.add(edit);
}

void Shelf::stand_for_itself(std::string_view path) {
  const auto found = documents_.find(std::string(path));
  if (found == documents_.end()) return;
  found->second.searched = Document::Searched::kDocument;
  found->second.differences = {};
}

/// Several edits at once are looked at one by one, in the old text: what an earlier one of them
/// inserted is not there, and ends the search.
void Shelf::note_deleted(std::string_view path, const text::Snapshot& old,
                         const text::Snapshot& now) {
  const auto since = now.edits_since(old.serial());
  if (!since.complete) return;
  for (std::size_t at = 0; at < since.edits.size(); ++at) {
    const text::Edit& edit = since.edits[at];
    if (replaces_all(edit, old.bytes().size())) return;
    // Back over the edits before it, the last one first.
    std::size_t begin = edit.begin;
    for (std::size_t back = at; back-- > 0;) {
      const text::Edit& earlier = since.edits[back];
      if (begin >= earlier.begin + earlier.inserted)
        begin = begin - earlier.inserted + earlier.removed;
      else if (begin + edit.removed > earlier.begin)
        return;
    }
    session_.deleted(path, old.bytes(), begin, edit.removed);
  }
}

void Shelf::close_document(std::string_view path) {
  const auto document = documents_.find(std::string(path));
  if (document == documents_.end()) return;
  std::erase(by_use_, &*document);
  documents_.erase(document);
  if (const auto found = files_.find(std::string(path)); found != files_.end())
    found->second.held->states[found->second.file] = HeldBatch::State::kSearched;
}

void Shelf::add(const BatchPtr& batch) {
  if (!batch || batch->file_count() == 0) return;
  auto held = std::make_unique<HeldBatch>();
  held->batch = batch;
  held->states.resize(batch->file_count(), HeldBatch::State::kSearched);
  held->files_left = batch->file_count();
  for (std::size_t file = 0; file < batch->file_count(); ++file) {
    const std::string& path = batch->path(file);
    remove_file(path);
    files_[path] = {held.get(), file};
    if (const auto open = documents_.find(path); open != documents_.end())
      stand_for_file(path, open->second, nullptr);
    path_bytes_ += bytes_of(path);
  }
  hold(std::move(held));
}

void Shelf::hold(std::unique_ptr<HeldBatch> held) {
  batch_bytes_ += bytes_of(*held);
  batch_text_bytes_ += held->batch->text_bytes();
  batches_.push_back(std::move(held));
}

void Shelf::let_go(const HeldBatch* held) {
  batch_bytes_ -= bytes_of(*held);
  batch_text_bytes_ -= held->batch->text_bytes();
  std::erase_if(batches_, [&](const auto& other) { return other.get() == held; });
}

void Shelf::remove_file(std::string_view path) {
  const auto found = files_.find(std::string(path));
  if (found == files_.end()) return;
  HeldBatch& held = *found->second.held;
  held.states[found->second.file] = HeldBatch::State::kRemoved;
  path_bytes_ -= bytes_of(found->first);
  stand_for_itself(path);
  files_.erase(found);
  if (--held.files_left == 0) let_go(&held);
}

void Shelf::forget(std::string_view path) {
  const std::string kept(path);  // the caller's name may be one of those removed
  close_document(kept);
  remove_file(kept);
  session_.forget(kept);
}

std::vector<HeldBatch> Shelf::to_merge() {
  if (is_merging_ || batches_.size() <= kBatchesMax) return {};
  std::map<std::string_view, std::vector<const HeldBatch*>> families;
  for (const auto& held : batches_) families[held->batch->family()].push_back(held.get());
  for (auto& [family, batches] : families) {
    if (batches.size() <= kBatchesMax) continue;
    std::ranges::sort(batches, {}, [](const HeldBatch* held) { return held->batch->text_bytes(); });
    std::vector<HeldBatch> small;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < batches.size() / 2; ++i) {
      bytes += batches[i]->batch->text_bytes();
      if (bytes > kBatchBytesMax) break;
      small.push_back(*batches[i]);
    }
    if (small.size() < 2) continue;
    is_merging_ = true;
    return small;
  }
  return {};
}

void Shelf::take_merged(const std::vector<HeldBatch>& from, const BatchPtr& merged) {
  is_merging_ = false;
  if (!merged) return;
  auto held = std::make_unique<HeldBatch>();
  held->batch = merged;
  held->states.resize(merged->file_count(), HeldBatch::State::kRemoved);
  for (std::size_t file = 0; file < merged->file_count(); ++file) {
    const auto found = files_.find(merged->path(file));
    if (found == files_.end()) continue;
    HeldBatch* before = found->second.held;
    const bool is_of_them = std::ranges::any_of(
        from, [&](const HeldBatch& other) { return other.batch == before->batch; });
    if (!is_of_them) continue;
    held->states[file] = before->states[found->second.file];
    ++held->files_left;
    found->second = {held.get(), file};
    if (--before->files_left == 0) let_go(before);
  }
  if (held->files_left > 0) hold(std::move(held));
}

std::vector<std::string> Shelf::drop_batch() {
  std::vector<std::string> dropped;
  if (batches_.empty()) return dropped;
  const HeldBatch* held = batches_.front().get();
  std::erase_if(files_, [&](const auto& file) {
    if (file.second.held != held) return false;
    path_bytes_ -= bytes_of(file.first);
    dropped.push_back(file.first);
    stand_for_itself(file.first);
    return true;
  });
  let_go(held);
  return dropped;
}

std::vector<const HeldBatch*> Shelf::batches_of(std::string_view family) const {
  std::vector<const HeldBatch*> found;
  for (const auto& held : batches_)
    if (held->batch->family() == family) found.push_back(held.get());
  return found;
}

void Shelf::search(Search& search, std::string_view path) const {
  const std::string family = family_of(path);
  search.scan_own(path);
  session_.search(search, family);
  scan_documents(search, path, family);
  const auto own = files_.find(std::string(path));
  search.look_up(batches_of(family), own == files_.end() ? PlacedFile{} : own->second);
}

/// Goes over the documents again and again, so that it waits for the memory of all at the same time.
void Shelf::scan_documents(Search& search, std::string_view path, std::string_view family) const {
  for (const Open* open : by_use_) __builtin_prefetch(&open->second);
  std::vector<const Open*> scanned;
  for (const Open* open : by_use_) {
    const auto& [other, document] = *open;
    if (document.searched == Document::Searched::kFile || document.family != family ||
        other == path)
      continue;
    scanned.push_back(open);
    __builtin_prefetch(document.snapshot.get());
    __builtin_prefetch(document.differences.spans().data());
  }
  const auto text_of = [](const Open& open) {
    const text::Snapshot& snapshot = *open.second.snapshot;
    return Scanned{snapshot.bytes(), Source::kOpenFile, open.first,
                   !snapshot.recent_edits().empty()};
  };
  for (const Open* open : scanned) prefetch({text_of(*open), &open->second.differences});
  for (const Open* open : scanned) {
    const Document& document = open->second;
    const auto edits = document.snapshot->recent_edits();
    if (document.searched == Document::Searched::kDifferences)
      search.scan({text_of(*open), &document.differences});
    else
      search.scan(text_of(*open), edits.empty() ? 0 : edits.back().begin);
  }
}

std::size_t Shelf::bytes() const { return session_.bytes() + batch_bytes_ + path_bytes_; }

std::size_t Shelf::text_bytes() const { return session_.bytes() + batch_text_bytes_; }

}  // namespace efimd::recall
