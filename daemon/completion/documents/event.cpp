#include "daemon/completion/documents/event.h"

#include <algorithm>

namespace efimd::completion {

namespace {

constexpr std::string_view kBlanks = " \t\n";

bool is_newline(std::string_view inserted, std::string_view behind) {
  return inserted.find('\n') != std::string_view::npos &&
         inserted.find_first_not_of(kBlanks) == std::string_view::npos &&
         behind.find_first_not_of(kBlanks) == std::string_view::npos;
}

bool is_auto_closed(std::string_view behind) {
  return behind.find_first_not_of(")]}>\"'`;") == std::string_view::npos;
}

Event classify_change(const text::Change& change, const LastRequest& last, std::string_view text,
                      std::size_t cursor) {
  if (cursor < change.begin) return Event::kEdit;
  // An edit is only what it changes: the end of an accepted text, such as ")", may have been there.
  const bool accepted =
      cursor > last.cursor + 1 && change.end > change.begin && agrees(last.shown, text, cursor);
  if (cursor > change.end) return accepted ? Event::kAccept : Event::kEdit;
  const std::string_view inserted = text.substr(change.begin, cursor - change.begin);
  const std::string_view behind = text.substr(cursor, change.end - cursor);
  if (inserted.empty() && behind.empty())
    return change.removed > 0 ? Event::kDelete
                              : (cursor == last.cursor ? Event::kRepeat : Event::kJump);
  if (is_newline(inserted, behind)) return Event::kNewline;
  if (accepted || (inserted.size() > 1 && agrees(last.shown, text, cursor))) return Event::kAccept;
  const bool typed = !inserted.empty() && inserted.size() <= kTypedBytesMax &&
                     change.removed <= kTypedBytesMax && is_auto_closed(behind) &&
                     inserted.find('\n') == std::string_view::npos;
  return typed ? Event::kType : Event::kEdit;
}

}  // namespace

bool is_left_of(const Shown& before, const Shown& now) {
  return now.begin >= before.begin &&
         now.begin + now.text.size() == before.begin + before.text.size() &&
         before.text.ends_with(now.text);
}

bool agrees(const std::optional<Shown>& shown, std::string_view text, std::size_t cursor) {
  if (!shown || shown->text.empty() || shown->begin >= cursor || cursor > text.size()) return false;
  const std::string_view since = text.substr(shown->begin, cursor - shown->begin);
  return since.starts_with(shown->text) || std::string_view(shown->text).starts_with(since);
}

std::string_view event_name(Event event) {
  switch (event) {
    case Event::kType:
      return "type";
    case Event::kNewline:
      return "newline";
    case Event::kAccept:
      return "accept";
    case Event::kDelete:
      return "delete";
    case Event::kJump:
      return "jump";
    case Event::kSwitch:
      return "switch";
    case Event::kEdit:
      return "edit";
    case Event::kOpen:
      return "open";
    case Event::kRepeat:
      return "repeat";
  }
  return "";
}

Event classify(const LastRequest* last, bool same_document, const text::Snapshot& snapshot,
               std::size_t cursor) {
  if (last == nullptr) return Event::kOpen;
  if (!same_document) return Event::kSwitch;
  const text::Snapshot::Since since = snapshot.edits_since(last->serial);
  if (!since.complete) return Event::kEdit;
  const text::Change change = text::sum_of(since.edits);
  if (!change.any) return cursor == last->cursor ? Event::kRepeat : Event::kJump;
  return classify_change(change, *last, snapshot.bytes(), cursor);
}

void forget_moved(LastRequest& last, const text::Snapshot& snapshot) {
  if (!last.shown) return;
  const text::Snapshot::Since since = snapshot.edits_since(last.serial);
  if (!since.complete ||
      (!since.edits.empty() && text::sum_of(since.edits).begin < last.shown->begin))
    last.shown.reset();
}

}  // namespace efimd::completion
