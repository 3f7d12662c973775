#include "daemon/recall/session_text.h"

#include <algorithm>

namespace efimd::recall {

namespace {

/// Shorter texts are typing errors, not something to come back to.
constexpr std::size_t kWorthBytesMin = 6;

std::string_view before(std::string_view text, std::size_t begin) {
  const std::size_t bytes = std::min(begin, SessionText::kBeforeBytes);
  return text.substr(begin - bytes, bytes);
}

}  // namespace

bool SessionText::join(std::string_view path, std::string_view text, std::size_t begin,
                       std::size_t removed) {
  if (kept_.empty()) return false;
  Kept& last = kept_.front();
  if (last.source != Source::kDeleted || last.path != path ||
      last.text.size() + removed > kDeletedBytesMax)
    return false;
  const std::string_view part = text.substr(begin, removed);
  bytes_ -= last.text.size();
  if (begin + removed == last.begin) {  // backspace
    const std::string_view context = before(text, begin);
    last.text = std::string(context).append(part).append(last.text, last.before);
    last.before = context.size();
    last.begin = begin;
  } else if (begin == last.begin) {  // delete
    last.text += part;
  } else {
    bytes_ += last.text.size();
    return false;
  }
  bytes_ += last.text.size();
  return true;
}

void SessionText::deleted(std::string_view path, std::string_view text, std::size_t begin,
                          std::size_t removed) {
  begin = std::min(begin, text.size());
  removed = std::min(removed, text.size() - begin);
  if (removed == 0 || join(path, text, begin, removed)) return;
  removed = std::min(removed, kDeletedBytesMax);
  const std::string_view context = before(text, begin);
  keep({std::string(path), family_of(path), std::string(context).append(text, begin, removed),
        context.size(), begin, Source::kDeleted});
}

void SessionText::accepted(std::string_view path, std::string_view text, std::size_t begin,
                           std::size_t inserted) {
  begin = std::min(begin, text.size());
  inserted = std::min({inserted, text.size() - begin, kDeletedBytesMax});
  if (inserted == 0) return;
  const std::string_view context = before(text, begin);
  keep({std::string(path), family_of(path), std::string(context).append(text, begin, inserted),
        context.size(), begin, Source::kAccepted});
}

void SessionText::keep(Kept kept) {
  // What was too short to keep had its chance to grow; now something else is deleted.
  if (!kept_.empty() && kept_.front().text.size() - kept_.front().before < kWorthBytesMin) {
    bytes_ -= kept_.front().text.size();
    kept_.pop_front();
  }
  bytes_ += kept.text.size();
  kept_.push_front(std::move(kept));
  while (kept_.size() > kTextsMax) {
    bytes_ -= kept_.back().text.size();
    kept_.pop_back();
  }
}

void SessionText::forget(std::string_view path) {
  std::erase_if(kept_, [&](const Kept& kept) {
    if (kept.path == path) bytes_ -= kept.text.size();
    return kept.path == path;
  });
}

void SessionText::limit(std::size_t bytes_max) {
  while (bytes_ > bytes_max) {
    bytes_ -= kept_.back().text.size();
    kept_.pop_back();
  }
}

std::vector<Scanned> SessionText::of_family(std::string_view family) const {
  std::vector<Scanned> found;
  for (const Kept& kept : kept_)
    if (kept.family == family && kept.text.size() - kept.before >= kWorthBytesMin)
      found.push_back({kept.text, kept.source, kept.path});
  return found;
}

}  // namespace efimd::recall
