#include "daemon/completion/fit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/completion/brackets.h"
#include "daemon/completion/fit_lines.h"
#include "daemon/completion/silence.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }

char closer_of(char opener) {
  switch (opener) {
    case '(':
      return ')';
    case '[':
      return ']';
    case '{':
      return '}';
    default:
      return '>';
  }
}

/// Quotes of this kind that no backslash escapes.
int count_quotes(std::string_view text, char quote) {
  int count = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      ++count;
    }
  }
  return count;
}

/// F-5 for a tail. Walks the completion's brackets that close what it did not open, in step with
/// the tail's.
class TailMatch {
 public:
  TailMatch(std::string_view line_before, std::string_view tail)
      : tail_(tail), open_before_(depth_after(0, line_before, line_before.size())) {
    const std::size_t first = next();
    if (first < tail_.size() && is_quote(tail_[first]) &&
        count_quotes(line_before, tail_[first]) % 2 == 1)
      quote_ = tail_[first];
    if (tail_.find('>') != std::string_view::npos) angles_ = Angles::kCounted;
  }

  /// The text to show; consumed() is then what of the tail it covers.
  std::string match(std::string text) {
    // Inside a string an even number of quotes leaves us inside, and the whole tail with the
    // buffer.
    if (quote_ != 0 && count_quotes(text, quote_) % 2 == 0) return text;
    if (quote_ != 0) take();
    std::size_t begin = 0;
    for (const std::string_view line : split_lines(text)) {
      if (!match_line(line, begin)) break;
      begin += line.size() + 1;
    }
    if (cut_ < text.size()) text.resize(trim_end(std::string_view(text).substr(0, cut_)).size());
    match_end(text);
    return with_blanks(std::move(text));
  }

  std::size_t consumed() const { return consumed_; }

 private:
  /// The tail's next byte that is no blank.
  std::size_t next() const {
    std::size_t at = consumed_;
    while (at < tail_.size() && is_space(tail_[at])) ++at;
    return at;
  }

  void take() { consumed_ = next() + 1; }

  /// False when the text is to be cut here.
  bool match_line(std::string_view line, std::size_t begin) {
    // Inside a string, its first quote closes it.
    const bool in_string = begin == 0 && quote_ != 0;
    const std::string scanned = in_string ? quote_ + std::string(line) : std::string(line);
    for (const Bracket& bracket : brackets_of(scanned, angles_)) {
      const std::size_t at = begin + bracket.at - (in_string ? 1 : 0);
      if (is_opener(bracket.c)) {
        open_.push_back(bracket.c);
      } else if (!open_.empty() && closer_of(open_.back()) == bracket.c) {
        open_.pop_back();
      } else if (!close(bracket.c, at)) {
        cut_ = at;
        return false;
      }
    }
    return true;
  }

  /// A bracket of the text that closes one in front of the cursor: the tail's next, or, behind a
  /// tail that is used up, another that the cursor's line has open. Behind a tail of auto-closed
  /// brackets, outer ones have theirs as well.
  bool close(char c, std::size_t at) {
    ++closed_;
    const std::size_t tail_at = next();
    if (tail_at == tail_.size()) return closes_ == 0 || closed_ <= open_before_;
    if (tail_[tail_at] != c) return !is_closer(tail_[tail_at]);
    if (tail_at > consumed_) blanks_.emplace_back(at, tail_.substr(consumed_, tail_at - consumed_));
    consumed_ = tail_at + 1;
    ++closes_;
    return true;
  }

  /// ";", "," or ":" at both ends.
  void match_end(std::string_view text) {
    const std::size_t at = next();
    if (at >= tail_.size() || text.empty() || !open_.empty()) return;
    const char last = text.back();
    if ((last == ';' || last == ',' || last == ':') && tail_[at] == last) consumed_ = at + 1;
  }

  /// The tail's own blanks in front of its brackets stay, so that what is replaced is part of what
  /// replaces it (VS Code shows nothing else).
  std::string with_blanks(std::string text) const {
    for (auto blank = blanks_.rbegin(); blank != blanks_.rend(); ++blank) {
      const auto& [at, blanks] = *blank;
      if (at > 0 && at <= text.size() && (is_space(text[at - 1]) || text[at - 1] == '\n')) continue;
      text.insert(std::min(at, text.size()), blanks);
    }
    return text;
  }

  std::string_view tail_;
  std::size_t consumed_ = 0;
  int open_before_;  ///< brackets that the cursor's line has open
  int closed_ = 0;   ///< of those in front of the cursor, by the text
  int closes_ = 0;   ///< of these, by a bracket that the tail has
  char quote_ = 0;   ///< of the string that the cursor stands in and the tail closes
  Angles angles_ = Angles::kIgnored;
  std::vector<char> open_;
  std::size_t cut_ = std::string_view::npos;
  std::vector<std::pair<std::size_t, std::string_view>> blanks_;
};

bool is_word(char c) { return has_word(std::string_view(&c, 1)); }

/// F-5 for a rest of the line that is more than a tail: what the completion's first line repeats of
/// it at its end is cut. A repetition begins at a word's border and is the whole rest, or at least
/// 3 bytes of it with a word.
std::string_view without_rest(std::string_view line, std::string_view rest) {
  constexpr std::size_t kRepeatedBytesMin = 3;
  rest = trim_end(rest);
  for (std::size_t size = std::min(line.size(), rest.size()); size > 0; --size) {
    const std::string_view repeated = line.substr(line.size() - size);
    if (!rest.starts_with(repeated)) continue;
    const std::size_t at = line.size() - size;
    if (at > 0 && is_word(line[at - 1]) && is_word(line[at])) continue;
    if (size == rest.size() || (size >= kRepeatedBytesMin && has_word(repeated)))
      return line.substr(0, at);
  }
  return line;
}

Fitted silent(std::string_view reason, std::size_t cursor) { return {{}, cursor, reason}; }

/// Whether `blanks` are whole levels of what the text around the cursor indents by.
bool is_whole_levels(std::string_view blanks, const FitPlace& place) {
  const text::Indentation unit = text::indentation_of(place.snapshot.bytes(), place.cursor);
  if (unit.tabs || blanks.back() == '\t') return blanks.back() == '\t';
  return unit.spaces > 1 && blanks.size() % static_cast<std::size_t>(unit.spaces) == 0;
}

/// F-2, the beginning.
std::string_view trim_begin(std::string_view text, std::string_view line_before,
                            const FitPlace& place) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (line_before.empty() || first == std::string_view::npos) return text;
  if (!is_blank(line_before)) return is_space(line_before.back()) ? text.substr(first) : text;
  const bool stray = first == 1 && text[0] == ' ' && text[1] != '*' && text[1] != '\n';
  return stray && is_whole_levels(line_before, place) ? text.substr(first) : text;
}

}  // namespace

Fitted fit(std::string_view generated, const FitPlace& place) {
  const std::string_view bytes = place.snapshot.bytes();
  const text::LineIndex& lines = place.snapshot.lines();
  const std::size_t line = lines.line_of(place.cursor);
  const std::size_t line_end = std::max(lines.content_end(bytes, line), place.cursor);
  const std::string_view before = bytes.substr(lines.start(line), place.cursor - lines.start(line));
  const std::string_view rest = bytes.substr(place.cursor, line_end - place.cursor);
  const std::size_t tail_end = std::clamp(place.tail_end, place.cursor, line_end);
  const bool rest_is_tail = tail_end == line_end || is_blank(rest);

  std::string text = readable(generated);
  if (text.empty())
    return silent(generated.empty() ? silence::kNothing : silence::kUnreadable, place.cursor);
  if (is_blank(text)) return silent(silence::kOnlyBlanks, place.cursor);
  text = trim_begin(text, before, place);
  if (rest_is_tail || is_space(rest.front())) text.resize(trim_end(text).size());
  text = with_indentation_of(text, before, place);
  if (const std::string_view kept = without_following_lines(text, before, place);
      kept.size() < text.size())
    text.resize(trim_end(kept).size());

  if (!rest_is_tail) text.resize(without_rest(split_lines(text).front(), rest).size());
  TailMatch tail(before, rest.substr(0, tail_end - place.cursor));
  text = tail.match(std::move(text));
  const std::size_t replaced = tail.consumed();
  if (is_blank(text) || text == rest.substr(0, replaced))
    return silent(silence::kRepeats, place.cursor);
  return {std::move(text), place.cursor + replaced, {}};
}

}  // namespace efimd::completion
