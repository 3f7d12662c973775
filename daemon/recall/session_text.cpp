#include "daemon/recall/session_text.h"

#include <algorithm>

#include "base/utf8.h"

namespace efimd::recall {

namespace {

/// Shorter texts are typing errors, not something to come back to.
constexpr std::size_t kWorthBytesMin = 6;

std::string_view before(std::string_view text, std::size_t begin) {
  const std::size_t bytes = std::min(begin, SessionText::kBeforeBytes);
  return text.substr(begin - bytes, bytes);
}

/// The text, or the whole lines of its first kDeletedBytesMax bytes: what goes on after a cut is
/// offered. Of one long line, whole code points.
std::string_view part_kept(std::string_view text) {
  if (text.size() <= SessionText::kDeletedBytesMax) return text;
  const std::string_view kept = text.substr(0, SessionText::kDeletedBytesMax);
  const std::size_t line_end = kept.rfind('\n');
  return line_end != std::string_view::npos ? kept.substr(0, line_end)
                                            : kept.substr(0, utf8::floor(text, kept.size()));
}

}  // namespace

bool SessionText::join(std::string_view path, std::string_view text, std::size_t begin,
                       std::size_t removed) {
  Newest& last = newest_;
  if (last.text.empty() || last.source != Source::kDeleted || last.path != path ||
      last.text.size() + removed > kDeletedBytesMax)
    return false;
  const std::string_view part = text.substr(begin, removed);
  if (begin + removed == last.begin) {  // backspace
    const std::string_view context = before(text, begin);
    last.text = std::string(context).append(part).append(last.text, last.before);
    last.before = context.size();
    last.begin = begin;
    return true;
  }
  if (begin != last.begin) return false;
  last.text += part;  // delete
  return true;
}

void SessionText::deleted(std::string_view path, std::string_view text, std::size_t begin,
                          std::size_t removed) {
  begin = std::min(begin, text.size());
  removed = std::min(removed, text.size() - begin);
  if (removed == 0 || join(path, text, begin, removed)) return;
  const std::string_view context = before(text, begin);
  keep({std::string(path), std::string(context).append(part_kept(text.substr(begin, removed))),
        context.size(), begin, Source::kDeleted});
}

void SessionText::accepted(std::string_view path, std::string_view text, std::size_t begin,
                           std::size_t inserted) {
  begin = std::min(begin, text.size());
  inserted = std::min(inserted, text.size() - begin);
  if (inserted == 0) return;
  const std::string_view context = before(text, begin);
  keep({std::string(path), std::string(context).append(part_kept(text.substr(begin, inserted))),
        context.size(), begin, Source::kAccepted});
}

void SessionText::keep(Newest newest) {
  settle();
  newest_ = std::move(newest);
  while (count() > kTextsMax) drop_oldest();
}

void SessionText::settle() {
  // What was too short to keep had its chance to grow; now something else is deleted.
  if (newest_.text.size() - newest_.before >= kWorthBytesMin)
    settled_[family_of(newest_.path)].append(newest_.text, newest_.source, newest_.path,
                                             ++last_number_);
  newest_ = {};
}

void SessionText::forget(std::string_view path) {
  if (newest_.path == path) newest_ = {};
  for (auto& [family, texts] : settled_) texts.forget(path);
  std::erase_if(settled_, [](const auto& family) { return family.second.empty(); });
}

std::size_t SessionText::bytes() const {
  std::size_t bytes = newest_.text.size();
  for (const auto& [family, texts] : settled_) bytes += texts.bytes();
  return bytes;
}

std::size_t SessionText::count() const {
  std::size_t texts = newest_.text.empty() ? 0 : 1;
  for (const auto& [family, kept] : settled_) texts += kept.count();
  return texts;
}

void SessionText::drop_oldest() {
  if (settled_.empty()) {
    newest_ = {};
    return;
  }
  const auto oldest = std::ranges::min_element(
      settled_, {}, [](const auto& family) { return family.second.first_number(); });
  oldest->second.drop_first();
  if (oldest->second.empty()) settled_.erase(oldest);
}

void SessionText::limit(std::size_t bytes_max) {
  while (bytes() > bytes_max) drop_oldest();
}

void SessionText::search(Search& search, std::string_view family) const {
  if (newest_.text.size() - newest_.before >= kWorthBytesMin && family_of(newest_.path) == family)
    search.scan(Scanned{newest_.text, newest_.source, newest_.path});
  if (const auto found = settled_.find(family); found != settled_.end()) search.scan(found->second);
}

}  // namespace efimd::recall
