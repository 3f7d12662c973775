#include "daemon/text/document.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "base/utf8.h"

namespace efimd::text {

namespace {

/// Room that a text keeps for later edits, so that they need not copy it again.
constexpr std::size_t kSpareBytes = 4096;

/// To overwrite 64 MiB and to give them back takes 20 ms: too long for a thread that serves others.
constexpr std::size_t kFreedAsideBytes = std::size_t{4} << 20;

void free_snapshot(const Snapshot* snapshot) {
  if (snapshot->bytes().size() >= kFreedAsideBytes) try {
      std::thread([snapshot] { delete snapshot; }).detach();
      return;
    } catch (const std::exception&) {
      // The system has no thread or no memory to give.
    }
  delete snapshot;
}

bool is_valid(std::string_view text) {
  const std::size_t ascii =
      utf8::ascii_prefix(text);  // nearly always all of it, and many times as fast
  return ascii == text.size() || utf8::valid_prefix(text.substr(ascii)) == text.size() - ascii;
}

bool is_plain(std::string_view text) {
  return text.find('\r') == std::string_view::npos && is_valid(text);
}

std::size_t boundary_at_or_before(std::string_view text, std::size_t byte) {
  byte = std::min(byte, text.size());
  while (byte > 0 && byte < text.size() && utf8::is_continuation(text[byte])) --byte;
  return byte;
}

/// Compared at once where texts are alike: ten times as fast as byte by byte.
constexpr std::size_t kBlockBytes = 256;

/// How many bytes, in whole code points, both begin with.
std::size_t common_front(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (most - same >= kBlockBytes && a.substr(same, kBlockBytes) == b.substr(same, kBlockBytes))
    same += kBlockBytes;
  while (same < most && a[same] == b[same]) ++same;
  const auto is_inside = [&](std::string_view text) {
    return same < text.size() && utf8::is_continuation(text[same]);
  };
  while (same > 0 && (is_inside(a) || is_inside(b))) --same;
  return same;
}

/// And how many both end with.
std::size_t common_end(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  const auto block = [&](std::string_view text, std::size_t from_end) {
    return text.substr(text.size() - from_end - kBlockBytes, kBlockBytes);
  };
  std::size_t same = 0;
  while (most - same >= kBlockBytes && block(a, same) == block(b, same)) same += kBlockBytes;
  while (same < most && a[a.size() - same - 1] == b[b.size() - same - 1]) ++same;
  while (same > 0 && utf8::is_continuation(a[a.size() - same])) --same;
  return same;
}

Error too_large(std::size_t bytes) {
  return {Fault::kBadInput,
          "document: " + std::to_string(bytes) + " bytes, over the limit of " +
              std::to_string(kDocumentBytesMax),
          "no completions in it until it is reopened smaller"};
}

Error too_many_edits(std::size_t edits) {
  return {Fault::kBadInput,
          "document: one change makes more than " + std::to_string(edits) +
              " replacements in a text too large for so many",
          "no completions in it until it is reopened"};
}

/// The last kRecentEditsMax of `old` and `fresh` together.
std::vector<Edit> recent(std::span<const Edit> old, std::span<const Edit> fresh) {
  if (fresh.size() > kRecentEditsMax) fresh = fresh.last(kRecentEditsMax);
  const std::size_t kept = std::min(old.size(), kRecentEditsMax - fresh.size());
  std::vector<Edit> edits;
  edits.reserve(kept + fresh.size());
  edits.insert(edits.end(), old.end() - static_cast<std::ptrdiff_t>(kept), old.end());
  edits.insert(edits.end(), fresh.begin(), fresh.end());
  return edits;
}

}  // namespace

std::string document_text(std::string text) {
  if (!is_valid(text)) text = utf8::sanitized(text);
  std::size_t kept = std::min(text.find('\r'), text.size());
  for (std::size_t at = kept; at < text.size(); ++at) {
    if (text[at] == '\r' && text.c_str()[at + 1] == '\n') continue;
    text[kept++] = text[at] == '\r' ? '\n' : text[at];
  }
  text.resize(kept);
  return text;
}

Snapshot::Snapshot(std::string bytes, LineIndex lines, std::uint64_t serial,
                   std::vector<Edit> recent_edits)
    : bytes_(std::move(bytes)),
      lines_(std::move(lines)),
      serial_(serial),
      recent_edits_(std::move(recent_edits)) {}

Snapshot::Since Snapshot::edits_since(std::uint64_t serial) const {
  if (serial > serial_ || serial_ - serial > recent_edits_.size()) return {};
  return {true, std::span(recent_edits_).last(static_cast<std::size_t>(serial_ - serial))};
}

Revision::Revision(SnapshotPtr base) : base_(std::move(base)), lines_(std::string_view{}) {}

Result<void> Revision::replace(std::size_t begin, std::size_t end, std::string_view text) {
  const std::string_view old = bytes();
  begin = boundary_at_or_before(old, begin);
  end = std::max(begin, boundary_at_or_before(old, end));
  if (text.ends_with('\r') && old.substr(end, 1) == "\n") text.remove_suffix(1);
  std::string plain;
  if (!is_plain(text)) text = plain = document_text(std::string(text));
  // Editors that send all of a text, or replace what they complete, change little of it.
  const std::size_t front = common_front(old.substr(begin, end - begin), text);
  begin += front;
  text.remove_prefix(front);
  const std::size_t same = common_end(old.substr(begin, end - begin), text);
  end -= same;
  text.remove_suffix(same);
  if (begin == end && text.empty()) return {};
  const std::size_t size = old.size() - (end - begin) + text.size();
  if (size > kDocumentBytesMax) return tl::unexpected(too_large(size));
  bytes_moved_ += size - begin;
  if (bytes_moved_ > kRevisionBytesMovedMax) return tl::unexpected(too_many_edits(edits_.size()));
  apply({base_->serial() + edits_.size() + 1, begin, end - begin, text.size()}, text);
  return {};
}

void Revision::apply(const Edit& edit, std::string_view text) {
  if (edited()) {
    bytes_.replace(edit.begin, edit.removed, text);
  } else {
    const std::string_view old = base_->bytes();
    bytes_.reserve(old.size() - edit.removed + edit.inserted + kSpareBytes);
    bytes_.append(old.substr(0, edit.begin)).append(text);
    bytes_.append(old.substr(edit.begin + edit.removed));
    lines_ = base_->lines();
  }
  lines_.replace(bytes_, edit.begin, edit.removed, edit.inserted);
  edits_.push_back(edit);
}

SnapshotPtr Revision::snapshot() && {
  if (!edited()) return std::move(base_);
  return {new Snapshot(std::move(bytes_), std::move(lines_), edits_.back().serial,
                       recent(base_->recent_edits(), edits_)),
          free_snapshot};
}

Document::Document(std::string_view text) {
  // So the edits that lead from one document's version to another's are never complete.
  static std::atomic<std::uint64_t> documents = 0;
  constexpr std::uint64_t kVersionsMax = std::uint64_t{1} << 32;
  std::string bytes = document_text(std::string(text));
  LineIndex lines(bytes);
  snapshot_.reset(new Snapshot(std::move(bytes), std::move(lines), ++documents * kVersionsMax, {}),
                  free_snapshot);
}

Result<Document> Document::open(std::string_view text) {
  if (text.size() > kDocumentBytesMax) return tl::unexpected(too_large(text.size()));
  return Document(text);
}

Result<void> Document::replace(std::size_t begin, std::size_t end, std::string_view text) {
  Revision revision = revise();
  Result<void> replaced = revision.replace(begin, end, text);
  if (replaced) adopt(std::move(revision));
  return replaced;
}

Result<void> Document::replace_all(std::string_view text) {
  return replace(0, snapshot_->bytes().size(), text);
}

void Document::adopt(Revision revision) { snapshot_ = std::move(revision).snapshot(); }

Change sum_of(std::span<const Edit> edits) {
  Change change;
  for (const Edit& edit : edits) {
    if (!change.any) change = {true, edit.begin, 0, edit.begin};
    const std::size_t edit_end = edit.begin + edit.removed;
    if (edit.begin < change.begin) {
      change.removed += change.begin - edit.begin;
      change.begin = edit.begin;
    }
    if (edit_end > change.end) {
      change.removed += edit_end - change.end;
      change.end = edit_end;
    }
    change.end += edit.inserted - edit.removed;
  }
  return change;
}

Result<SnapshotPtr> with_replaced(const SnapshotPtr& base, std::size_t begin, std::size_t end,
                                  std::string_view text) {
  Revision revision(base);
  if (Result<void> replaced = revision.replace(begin, end, text); !replaced)
    return tl::unexpected(std::move(replaced).error());
  return std::move(revision).snapshot();
}

}  // namespace efimd::text
