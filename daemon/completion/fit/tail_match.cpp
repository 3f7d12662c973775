#include "daemon/completion/fit/tail_match.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "daemon/completion/fit/fit_lines.h"

namespace efimd::completion {

namespace {

/// The next `quote` from `at` on that no backslash escapes.
std::size_t find_quote(std::string_view text, std::string_view quote, std::size_t at) {
  for (; at < text.size(); ++at) {
    if (text.substr(at).starts_with(quote)) return at;
    if (text[at] == '\\') ++at;
  }
  return std::string_view::npos;
}

int count_quotes(std::string_view text, std::string_view quote) {
  int count = 0;
  for (std::size_t at = 0; (at = find_quote(text, quote, at)) != std::string_view::npos;
       at += quote.size())
    ++count;
  return count;
}

class TailMatch {
 public:
  explicit TailMatch(const CursorContext& place)
      : place_(place),
        tail_(place.rest.substr(0, place.tail_end - place.cursor)),
        at_cursor_(scan(place.line_before, place.language, place.state).end) {
    Lexical state = place.state;
    open_before_ =
        depth_after(0, place.line_before, place.language, state, place.line_before.size());
    if (tail_.find('>') != std::string_view::npos) also_ = Also::kAngles;
    find_string();
  }

  TailMatched match(std::string text) {
    // Inside a string an even number of quotes leaves us inside, and the whole tail with the
    // buffer.
    if (!quote_.empty() && count_quotes(text, quote_) % 2 == 0 && quote_in_tail_first_)
      return {std::move(text), 0};
    text_ = text;
    match_colon(0);
    std::size_t begin = 0;
    for (const std::string_view line : split_lines(text)) {
      if (!match_line(line, begin)) break;
      const std::size_t end = begin + line.size();
      if (end < text.size() && !match_line_end(line, end)) break;
      begin = end + 1;
    }
    if (cut_ < text.size()) text.resize(trim_end(std::string_view(text).substr(0, cut_)).size());
    match_end(text);
    return {with_blanks(std::move(text)), consumed_};
  }

 private:
  /// Which string the cursor stands in, as far as the tail closes it.
  void find_string() {
    const std::size_t first = next();
    if (first == tail_.size()) return;
    if (at_cursor_.in == Lexical::In::kString && at_cursor_.until != "\n") {
      quote_ = at_cursor_.until;
    }
    // Some editors close quotes in comments, in prose and in strings of other quotes, too.
    const bool may_be_guessed = place_.language.quotes_are_guessed || place_.language.prose ||
                                at_cursor_.in != Lexical::In::kCode;
    if (quote_.empty() || tail_.find(quote_) == std::string_view::npos)
      quote_ = may_be_guessed ? guessed_quote() : std::string();
    quote_in_tail_first_ = tail_.substr(first).starts_with(quote_);
  }

  /// The tail's first quote if the line has one to close; it may stand behind brackets: "#{name}".
  std::string guessed_quote() const {
    const auto* quote = std::ranges::find_if(tail_, is_quote);
    if (quote == tail_.end()) return {};
    std::string guessed(1, *quote);
    return count_quotes(place_.line_before, guessed) % 2 == 1 ? guessed : std::string();
  }

  /// Where the string that the cursor stands in ends in the text's first line. In front of the
  /// tail's quote, brackets are the string's own, but for those that an editor closed in it:
  /// "#{name}". Between these stands code, with strings of its own: "$(dirname "$0")".
  std::size_t string_end(std::string_view line) const {
    if (quote_in_tail_first_) return std::min(find_quote(line, quote_, 0), line.size());
    const auto closers = std::ranges::count_if(tail_.substr(0, tail_.find(quote_)), is_closer);
    std::ptrdiff_t depth = closers;
    for (const Bracket& bracket : scan(line, place_.language, code_at(0), also_).brackets) {
      depth += is_opener(bracket.c) ? 1 : -1;
      if (depth == 0) return std::min(find_quote(line, quote_, bracket.at), line.size());
    }
    if (count_quotes(line, quote_) % 2 == 0) return line.size();
    return std::min(find_quote(line, quote_, 0), line.size());
  }

  /// For a scan of the text from `at` on, which begins in code. A ")" of the tail is no pattern's of a
  /// shell, and so the text's may close what that one does.
  Lexical code_at(std::size_t at) const {
    Lexical begin;
    begin.previous = at > 0 ? text_[at - 1] : at_cursor_.previous;
    begin.parens = tail_.find(')') == std::string_view::npos
                       ? at_cursor_.parens
                       : static_cast<int>(tail_.size() + text_.size());
    return begin;
  }

  /// The tail's next byte that is no blank.
  std::size_t next() const {
    std::size_t at = consumed_;
    while (at < tail_.size() && is_space(tail_[at])) ++at;
    return at;
  }

  /// False when the text is to be cut here.
  bool match_line(std::string_view line, std::size_t begin) {
    std::size_t code = 0;
    if (begin == 0 && !quote_.empty()) {
      const std::size_t end = string_end(line);
      if (!quote_in_tail_first_ && !match_brackets(line.substr(0, end), begin)) return false;
      code = std::min(end + quote_.size(), line.size());
      if (end < line.size() && tail_.substr(next()).starts_with(quote_)) {
        consumed_ = next() + quote_.size();
        match_colon(code);
      }
    }
    return match_brackets(line.substr(code), begin + code);
  }

  bool match_brackets(std::string_view code, std::size_t begin) {
    for (const Bracket& bracket : scan(code, place_.language, code_at(begin), also_).brackets) {
      if (is_opener(bracket.c)) {
        open_.push_back(bracket.c);
      } else if (!open_.empty() && closer_of(open_.back()) == bracket.c) {
        open_.pop_back();
      } else if (!close(bracket.c, begin + bracket.at)) {
        cut_ = begin + bracket.at;
        return false;
      }
    }
    return true;
  }

  /// A bracket of the text that closes one before the cursor: the tail's next, or, after a
  /// tail that is used up, another that the cursor's line has open. Behind a tail of auto-closed
  /// brackets, outer ones have theirs as well.
  bool close(char c, std::size_t at) {
    ++closed_;
    const std::size_t tail_at = next();
    if (tail_at == tail_.size()) return closes_ == 0 || closed_ <= open_before_;
    if (tail_[tail_at] != c) return !is_closer(tail_[tail_at]);
    cover(tail_at + 1, at);
    match_colon(at + 1);
    ++closes_;
    return true;
  }

  /// The tail up to `end`, by the text from `at` on.
  void cover(std::size_t end, std::size_t at) {
    if (next() > consumed_) blanks_.emplace_back(at, tail_.substr(consumed_, next() - consumed_));
    consumed_ = end;
  }

  /// ":" where both go on with it, from `at` of the text on: "key^:", "f(^): int". As many, because
  /// "::" is another sign.
  void match_colon(std::size_t at) {
    const auto signs = [](std::string_view from) {
      return std::min(from.find_first_not_of(':'), from.size());
    };
    at = std::min(text_.find_first_not_of(" \t", at), text_.size());
    const std::size_t count = signs(tail_.substr(next()));
    if (count > 0 && count == signs(text_.substr(at))) cover(next() + count, at);
  }

  /// ";" or ":" at the end of a line that has others below: the tail's, which would otherwise stand
  /// behind the last of them. A "," may be missing there, because a text that is cut ends before
  /// one. False when the text is to be cut at the line's end, because more of the tail is left.
  bool match_line_end(std::string_view line, std::size_t end) {
    line = trim_end(line);
    if (line.ends_with(',') || !match_end(line)) return true;
    if (next() == tail_.size()) return true;
    cut_ = end;
    return false;
  }

  /// ";", "," or ":" at both ends.
  bool match_end(std::string_view text) {
    const std::size_t at = next();
    if (at >= tail_.size() || text.empty() || !open_.empty()) return false;
    const char last = text.back();
    if ((last != ';' && last != ',' && last != ':') || tail_[at] != last) return false;
    consumed_ = at + 1;
    return true;
  }

  std::string with_blanks(std::string text) const {
    for (auto blank = blanks_.rbegin(); blank != blanks_.rend(); ++blank) {
      const auto& [at, blanks] = *blank;
      if (at > 0 && at <= text.size() && (is_space(text[at - 1]) || text[at - 1] == '\n')) continue;
      text.insert(std::min(at, text.size()), blanks);
    }
    return text;
  }

  const CursorContext& place_;
  std::string_view tail_;
  std::string_view text_ = {};
  Lexical at_cursor_;
  std::size_t consumed_ = 0;
  int open_before_ = 0;  ///< brackets that the cursor's line has open
  int closed_ = 0;       ///< of those before the cursor, by the text
  int closes_ = 0;       ///< of these, by a bracket that the tail has
  std::string quote_;    ///< of the string that the cursor stands in and the tail closes
  bool quote_in_tail_first_ = false;
  Also also_ = Also::kNothing;
  std::vector<char> open_;
  std::size_t cut_ = std::string_view::npos;
  std::vector<std::pair<std::size_t, std::string_view>> blanks_;
};

}  // namespace

TailMatched match_tail(std::string text, const CursorContext& place) {
  return TailMatch(place).match(std::move(text));
}

}  // namespace efimd::completion
