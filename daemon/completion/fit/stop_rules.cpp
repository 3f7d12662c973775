#include "daemon/completion/fit/stop_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "daemon/completion/fit/repeats.h"
#include "daemon/syntax/continuation.h"

namespace efimd::completion {

namespace {

constexpr std::string_view kBlanks = " \t";
/// A tab's columns, for comparing lines of one text: any fixed number does as long as the text does
/// not mix.
constexpr int kTabColumns = 4;

std::string_view leading_blanks(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(kBlanks), line.size()));
}

bool has_only_blanks(std::string_view line) { return leading_blanks(line).size() == line.size(); }

int columns(std::string_view blanks) {
  int sum = 0;
  for (const char c : blanks) sum += c == '\t' ? kTabColumns : 1;
  return sum;
}

std::string_view without_blanks_behind(std::string_view line) {
  return line.substr(0, line.find_last_not_of(" \t\r") + 1);
}

bool is_word_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view first_word(std::string_view content) {
  content.remove_prefix(leading_blanks(content).size());
  return content.substr(0, static_cast<std::size_t>(
                               std::ranges::find_if_not(content, is_word_byte) - content.begin()));
}

bool continues_block(std::string_view word) {
  constexpr auto kWords =
      std::to_array<std::string_view>({"else", "elif", "elseif", "elsif", "except", "catch",
                                       "finally", "rescue", "ensure", "then", "do"});
  return std::ranges::find(kWords, word) != kWords.end();
}

bool ends_block(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>({"end", "fi", "done", "esac"});
  return std::ranges::find(kWords, word) != kWords.end();
}

bool is_comment(std::string_view line, const Language& language) {
  constexpr auto kMarks =
      std::to_array<std::string_view>({"#", "//", "--", "/*", "* ", "*/", ";;", "\"\"\"", "'''"});
  line.remove_prefix(leading_blanks(line).size());
  if (language.prose) return false;
  return std::ranges::any_of(kMarks, [&](std::string_view mark) { return line.starts_with(mark); });
}

/// What closes the text's brackets, innermost first.
std::string closers_of(std::string_view text, const Language& language) {
  std::string open;
  for (const Bracket& bracket : scan(text, language).brackets) {
    if (is_opener(bracket.c)) {
      open += closer_of(bracket.c);
    } else if (!open.empty()) {
      open.pop_back();
    }
  }
  return {open.rbegin(), open.rend()};
}

bool has_plain_word(std::string_view line) { return std::ranges::any_of(line, is_word_byte); }

}  // namespace

StopPlace stop_place(const CursorContext& place) {
  return {.line_before = place.line_before,
          .next_line = std::string(place.next_line),
          .inside_line = !place.rest_is_tail,
          .language = place.language,
          .state = place.state,
          .grammar = place.line_is_short ? place.grammar : syntax::Grammar::kNone,
          .parse_time_us = place.parse_time_us,
          .above = std::string(window_above(place))};
}

StopRules::StopRules(StopRule rule, StopPlace place)
    : rule_(rule), place_(std::move(place)), siblings_(has_only_blanks(place_.line_before)) {
  if (rule_ == StopRule::kBlock && place_.inside_line) rule_ = StopRule::kLine;
  state_ = place_.state;
  if (!siblings_) base_ = columns(leading_blanks(place_.line_before));
}

bool StopRules::feed(std::string_view bytes) {
  if (ended_) return true;
  text_ += bytes;
  while (!ended_ && advance()) {
  }
  return ended_;
}

std::string StopRules::finish() {
  finishing_ = true;
  while (!ended_ && advance()) {
  }
  return text_.substr(0, kept_end_);
}

std::string_view StopRules::settled() const {
  const std::string_view all = text_;
  if (ended_) return all.substr(0, kept_end_);
  if (rule_ == StopRule::kNone) return all;
  // The first line is always a part of it; a later one may turn out not to be when it is whole.
  if (rule_ == StopRule::kLine || lines_ == 0) return all.substr(0, all.find_first_of("\r\n"));
  return all.substr(0, kept_end_);
}

StopRules::Line StopRules::current_line() const {
  const std::size_t end = text_.find_first_of("\r\n", line_begin_);
  const std::string_view rest = std::string_view(text_).substr(line_begin_);
  if (end == std::string::npos) return {rest, finishing_, text_.size()};
  const std::string_view content = rest.substr(0, end - line_begin_);
  if (text_[end] == '\n') return {content, true, end + 1};
  // A "\r" at the text's end may still become "\r\n".
  if (end + 1 == text_.size()) return {content, finishing_, end + 1};
  return {content, true, end + (text_[end + 1] == '\n' ? 2U : 1U)};
}

void StopRules::end_at(std::size_t byte) {
  kept_end_ = byte;
  ended_ = true;
}

/// One decision; false when it must wait for more text.
bool StopRules::advance() {
  if (rule_ == StopRule::kNone) {
    kept_end_ = text_.size();
    return false;
  }
  const Line line = current_line();
  if (rule_ == StopRule::kBlock) return advance_block(line);
  if (line.content.size() < text_.size() || line.whole) end_at(line.content.size());
  return false;
}

bool StopRules::advance_block(const Line& line) {
  const bool blank = has_only_blanks(line.content);
  if (blank && (!line.whole || line_begin_ == text_.size())) return false;
  if (blank) {
    take_blank(line);
    return true;
  }
  if (!entered_) {
    const std::string_view word = first_word(line.content);
    const bool word_open =
        !word.empty() && word.data() + word.size() == line.content.data() + line.content.size();
    if (word_open && !line.whole) return false;
    if (!begins_within(line.content)) {
      end_at(kept_end_);
      return true;
    }
    entered_ = true;
  }
  if (!line.whole) return false;
  take_line(line);
  return true;
}

void StopRules::take_blank(const Line& line) {
  if (lines_ > 0) ++blanks_;
  if (lines_ == 0) {
    if (!siblings_ && is_comment(place_.line_before, place_.language)) {
      siblings_ = true;
      base_ = -1;
    }
    const int depth =
        depth_after(0, place_.line_before, place_.language, state_, place_.line_before.size());
    depth_ = siblings_ ? 0 : depth;
    opened_ = depth_ > 0;
    take_owner(place_.line_before);
  }
  ++lines_;
  line_begin_ = line.next;
  if (blanks_ >= 2) end_at(kept_end_);
}

bool StopRules::begins_within(std::string_view content) {
  const std::string_view own = leading_blanks(content);
  int indentation = columns(own);
  if (lines_ == 0 && siblings_) indentation += columns(place_.line_before);
  if (base_ < 0) base_ = indentation;
  if (lines_ == 0) return true;
  if (indentation < base_) return false;
  if (indentation == base_) return at_base_within(content, content[own.size()]);
  deeper_ = true;
  return true;
}

bool StopRules::at_base_within(std::string_view content, char first) const {
  if (depth_ > 0) return true;
  const std::string_view word = first_word(content);
  if (deeper_ && (continues_block(word) || ends_block(word))) return true;
  if (!siblings_) return first == '{' && !deeper_;
  if (deeper_) return false;
  const bool first_text = kept_end_ == 0;
  return first_text || base_ > 0 || blanks_ == 0;
}

/// SR-8.
void StopRules::take_owner(std::string_view first_line) {
  first_line = without_blanks_behind(first_line);
  const bool is_python = place_.grammar == syntax::Grammar::kPython;
  if (place_.grammar == syntax::Grammar::kNone || !first_line.ends_with(is_python ? ':' : '{'))
    return;
  const std::string text = place_.above + std::string(first_line);
  const auto begin = syntax::block_begin(place_.grammar, text, closers_of(text, place_.language),
                                         place_.parse_time_us);
  if (!begin || *begin >= place_.above.size()) return;
  const std::size_t line = *begin == 0 ? 0 : text.rfind('\n', *begin - 1) + 1;
  base_ = std::min(base_, columns(leading_blanks(std::string_view(text).substr(line))));
  siblings_ = false;
  depth_ = is_python ? 0 : 1;
  opened_ = !is_python;
}

void StopRules::take_line(const Line& line) {
  std::string full = (lines_ == 0 ? place_.line_before : "") + std::string(line.content);
  if (lines_ > 0 && has_plain_word(full) && full == last_line_) {
    ended_ = true;
    return;
  }
  last_line_ = std::move(full);
  const std::string_view own = leading_blanks(line.content);
  if (lines_ == 0) {
    depth_ = depth_after(0, place_.line_before + std::string(line.content), place_.language, state_,
                         place_.line_before.size());
    take_owner(last_line_);
  } else {
    depth_ = depth_after(depth_, line.content, place_.language, state_);
  }
  kept_end_ = line_begin_ + line.content.size();
  const bool at_base = lines_ == 0 || columns(own) <= base_;
  const bool closes = opened_ && depth_ <= 0 && at_base && is_closer(line.content[own.size()]);
  const bool ends = deeper_ && at_base && ends_block(first_word(line.content));
  const bool on_blank_line = lines_ > 0 || has_only_blanks(place_.line_before);
  const std::string_view whole = lines_ > 0 ? line.content : line.content.substr(own.size());
  const std::string_view next =
      lines_ > 0
          ? std::string_view(place_.next_line)
          : std::string_view(place_.next_line).substr(leading_blanks(place_.next_line).size());
  const bool repeats = on_blank_line && has_plain_word(whole) &&
                       leading_blanks(whole) == leading_blanks(next) &&
                       nearly_equal(whole, next, place_.language);
  const bool finished =
      lines_ == 0 && !siblings_ && depth_ <= 0 && without_blanks_behind(whole).ends_with(';');
  if (closes || ends || depth_ < 0 || finished || repeats) ended_ = true;
  opened_ = opened_ || depth_ > 0;
  entered_ = false;
  blanks_ = 0;
  ++lines_;
  line_begin_ = line.next;
}

}  // namespace efimd::completion
