#include "daemon/completion/documents/rejected.h"

#include <algorithm>
#include <utility>

#include "daemon/completion/fit/fit_lines.h"

namespace efimd::completion {

namespace {

/// Of the line before a suggestion: the rest of a longer one says nothing more.
constexpr std::size_t kLineBeforeBytesMax = 256;

std::string line_before(const text::Snapshot& snapshot, std::size_t byte) {
  const std::size_t begin = snapshot.lines().start(snapshot.lines().line_of(byte));
  const std::size_t size = std::min(byte - begin, kLineBeforeBytesMax);
  return std::string(snapshot.bytes().substr(byte - size, size));
}

std::string_view first_line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return trim_end(text.substr(0, text.find_first_of("\r\n")));
}

bool same_suggestion(std::string_view a, std::string_view b) {
  a = first_line(a);
  b = first_line(b);
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && 2 * a.size() >= b.size();
}

/// False when `edit` took the place away.
bool move_with(std::size_t& begin, const text::Edit& edit) {
  if (edit.begin >= begin) return true;
  if (edit.begin + edit.removed > begin) return false;
  begin += edit.inserted - edit.removed;
  return true;
}

/// Whether text was written in the suggestion's place, or after its typed part. An edit is only what it
/// changes: of ");" in place of ")" it is the ";", behind what the suggestion says, too.
bool written_at(const LastRequest& last, const text::Snapshot& snapshot) {
  const std::size_t begin = last.shown->begin;
  const auto is_there = [&](std::size_t at) {
    return at <= std::max(last.cursor, begin) ||
           last.shown->text.starts_with(snapshot.bytes().substr(begin, at - begin));
  };
  const text::Snapshot::Since since = snapshot.edits_since(last.serial);
  return since.complete && std::ranges::any_of(since.edits, [&](const text::Edit& edit) {
           return edit.inserted > 0 && edit.begin >= begin && is_there(edit.begin);
         });
}

}  // namespace

void Rejections::follow(const LastRequest& last, const text::Snapshot& snapshot) {
  const text::Snapshot::Since since = snapshot.edits_since(last.serial);
  const auto lost = [&](Suggestion& suggestion) {
    return !since.complete || !std::ranges::all_of(since.edits, [&](const text::Edit& edit) {
      return move_with(suggestion.shown.begin, edit);
    });
  };
  std::erase_if(turned_down_, lost);
  if (taken_ && lost(*taken_)) taken_.reset();
}

void Rejections::turn_down(Suggestion suggestion) {
  if (turned_down_.size() == kTurnedDownMax) turned_down_.erase(turned_down_.begin());
  turned_down_.push_back(std::move(suggestion));
}

void Rejections::judge(const LastRequest& last, const text::Snapshot& snapshot,
                       std::size_t cursor) {
  follow(last, snapshot);
  const auto is_at = [&](const Shown& shown) {
    return agrees(shown, snapshot.bytes(), shown.begin + shown.text.size());
  };
  if (taken_ && cursor == taken_->shown.begin && !is_at(taken_->shown)) {
    turn_down(std::move(*taken_));
    taken_.reset();
  }
  if (!last.shown || last.shown->begin >= cursor || !written_at(last, snapshot)) return;
  Suggestion suggestion{*last.shown, line_before(snapshot, last.shown->begin)};
  if (!agrees(last.shown, snapshot.bytes(), cursor)) {
    turn_down(std::move(suggestion));
  } else if (is_at(*last.shown)) {
    taken_ = std::move(suggestion);
  }
}

void Rejections::dismiss(const LastRequest& last, const text::Snapshot& snapshot) {
  if (!last.shown || last.serial != snapshot.serial()) return;
  const std::size_t typed = last.cursor - std::min(last.cursor, last.shown->begin);
  if (typed >= last.shown->text.size()) return;
  const std::size_t begin = last.shown->begin + typed;
  turn_down({{last.shown->text.substr(typed), begin}, line_before(snapshot, begin)});
}

bool Rejections::turned_down(const text::Snapshot& snapshot, std::size_t begin,
                             std::optional<std::string_view> text) const {
  return std::ranges::any_of(turned_down_, [&](const Suggestion& each) {
    return each.shown.begin == begin && (!text || same_suggestion(each.shown.text, *text)) &&
           each.line_before == line_before(snapshot, begin);
  });
}

}  // namespace efimd::completion
