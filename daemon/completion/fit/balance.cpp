#include "daemon/completion/fit/balance.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "daemon/completion/fit/fit_lines.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

/// Lines after the cursor's in which a bracket's partner is looked for.
constexpr std::size_t kLinesBelowMax = 512;

struct Pair {
  std::size_t open = 0, close = 0;
};

/// What the brackets and strings of a text leave undone, and what they do.
struct Undone {
  std::vector<Bracket> open, closing;
  std::vector<std::optional<OpenBracket>> above;  ///< for each closing one, what it closes there
  std::vector<Pair> pairs;
  std::vector<std::size_t> strings;    ///< where they begin
  std::optional<std::size_t> comment;  ///< where a comment begins that goes to the end
};

Undone undone_in(std::string_view text, const CursorContext& place) {
  const Scan read = scan(text, place.language, place.state);
  Undone undone;
  std::vector<OpenBracket> above = place.open;
  for (const Bracket& bracket : read.brackets) {
    if (is_opener(bracket.c)) {
      undone.open.push_back(bracket);
    } else if (!undone.open.empty() && closer_of(undone.open.back().c) == bracket.c) {
      undone.pairs.push_back({undone.open.back().at, bracket.at});
      undone.open.pop_back();
    } else {
      undone.closing.push_back(bracket);
      undone.above.push_back(close_last(above, bracket.c));
    }
  }
  undone.strings = read.unclosed;
  // One that the surroundings began is theirs, and so begins at 0 without being one of the line's.
  const bool own = place.state.in == Lexical::In::kCode || read.end.begin > 0;
  if (read.end.in == Lexical::In::kString && own) undone.strings.push_back(read.end.begin);
  if (read.end.in == Lexical::In::kComment && own) undone.comment = read.end.begin;
  return undone;
}

/// Whether the line ends no block, though it is indented no more than the block's begin: a label, as
/// "case 1:" and "public:", or a line of a preprocessor. One that opens a block has a "}" of its own.
bool is_label(std::string_view line, const Language& language) {
  constexpr auto kWords =
      std::to_array<std::string_view>({"case", "default", "public", "private", "protected"});
  if (language.comment_open != "/*") return false;
  line = trim_end(line.substr(text::leading_blanks(line).size()));
  if (line.ends_with('{')) return false;
  if (line.starts_with('#') || line.ends_with(':')) return true;
  const std::size_t word = std::min(line.find_first_of(" \t:"), line.size());
  return std::ranges::find(kWords, line.substr(0, word)) != kWords.end();
}

/// Whether the lines after the cursor's close what `opener` opened on a line of this indentation.
bool closed_below(const CursorContext& place, std::string_view indentation, char opener) {
  const text::LineIndex& lines = place.snapshot.lines();
  const std::size_t first = lines.line_of(place.cursor) + 1;
  const std::size_t end = std::min(lines.line_count(), first + kLinesBelowMax);
  for (std::size_t line = first; line < end; ++line) {
    const std::string_view content = place.snapshot.line(line);
    const std::string_view own = text::leading_blanks(content);
    if (is_blank(content) || own.size() > indentation.size()) continue;
    if (is_label(content, place.language)) continue;
    return own == indentation && content[own.size()] == closer_of(opener);
  }
  return false;
}

class Check {
 public:
  Check(std::string_view text, const CursorContext& place, std::size_t replaced)
      : place_(place),
        before_(place.line_before),
        replaced_(std::min(replaced, place.rest.size())),
        rest_(place.rest.substr(replaced_, kLineBytesMax)),
        begin_(before_.size()),
        end_(begin_ + text.size()),
        whole_(before_ + std::string(text) + rest_),
        undone_(undone_in(whole_, place)) {}

  /// The offset, in the text, of the first offence.
  std::optional<std::size_t> first_offence() const {
    std::optional<std::size_t> first;
    const auto found = [&](std::size_t at) {
      if (ours(at) && (!first || at < *first)) first = at;
    };
    for (std::size_t i = 0; i < undone_.closing.size(); ++i)
      if (ours(undone_.closing[i].at) && !closes_one_above(undone_, i) && !is_opened_again(i))
        found(undone_.closing[i].at);
    for (const Bracket& bracket : undone_.open)
      if (ours(bracket.at) && !may_stay_open(bracket)) found(statement_of(bracket));
    for (const std::size_t at : undone_.strings) found(at);
    if (const auto quote = turned_inside_out()) found(*quote);
    if (const auto bracket = taken_from_rest()) found(*bracket);
    if (hides_rest()) found(*undone_.comment);
    return first ? std::optional(*first - begin_) : std::nullopt;
  }

 private:
  bool ours(std::size_t at) const { return at >= begin_ && at < end_; }

  std::string_view line_at(std::size_t at) const {
    const std::size_t newline = at == 0 ? std::string::npos : whole_.rfind('\n', at - 1);
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    return std::string_view(whole_).substr(begin, whole_.find('\n', at) - begin);
  }

  bool closes_one_above(const Undone& undone, std::size_t index) const {
    const std::optional<OpenBracket>& open = undone.above[index];
    if (!open) return !place_.open_is_all && index >= place_.open.size();
    return !closed_below(place_, open->indentation, open->c);
  }

  /// Whether the text goes on to open another for the lines below to close: "} else {". It has to open
  /// as many as it closes there.
  bool is_opened_again(std::size_t index) const {
    const std::optional<OpenBracket>& above = undone_.above[index];
    if (!above) return false;
    const auto opens = [&](const Bracket& bracket) {
      return ours(bracket.at) && bracket.c == above->c && bracket.at > undone_.closing[index].at &&
             text::leading_blanks(line_at(bracket.at)) == above->indentation;
    };
    const auto closed = std::ranges::count_if(undone_.above, [&](const auto& other) {
      return other && other->c == above->c && other->indentation == above->indentation;
    });
    return std::ranges::count_if(undone_.open, opens) >= closed;
  }

  /// Where the line that a block's opener ends begins, if that is the text's own; else the opener.
  std::size_t statement_of(const Bracket& opener) const {
    const std::size_t newline = whole_.rfind('\n', opener.at);
    const std::size_t line_end = std::min(whole_.find('\n', opener.at), whole_.size());
    const bool ends_line =
        is_blank(std::string_view(whole_).substr(opener.at + 1, line_end - opener.at - 1));
    return ends_line && newline != std::string::npos && ours(newline) ? newline : opener.at;
  }

  /// Of the line on which the bracket's statement began: one line or several up, if the bracket's own
  /// line closes what is open there, as "int b) {" does.
  std::string_view indentation_of(const Bracket& bracket) const {
    const std::string_view line = line_at(bracket.at);
    const std::size_t line_begin = static_cast<std::size_t>(line.data() - whole_.data());
    std::string_view found = text::leading_blanks(line);
    for (std::size_t i = 0; i < undone_.closing.size(); ++i)
      if (const std::size_t at = undone_.closing[i].at;
          undone_.above[i] && at >= line_begin && at < bracket.at)
        found = undone_.above[i]->indentation;
    return found;
  }

  bool may_stay_open(const Bracket& bracket) const {
    const std::size_t line_end = std::min(whole_.find('\n', bracket.at), whole_.size());
    const bool goes_on =
        line_end < end_ && !is_blank(std::string_view(whole_).substr(line_end, end_ - line_end));
    // With the line's last bracket, those around it on its line are open for the block, too.
    const std::size_t last = trim_end(std::string_view(whole_).substr(0, line_end)).size() - 1;
    const bool ends_line =
        std::ranges::any_of(undone_.open, [&](const Bracket& other) { return other.at == last; });
    if (goes_on) return ends_line;
    if (ends_line && whole_[last] == '{' && place_.next_line.empty()) return true;
    return closed_below(place_, indentation_of(bracket), bracket.c);
  }

  /// The text's last quote, where the rest of the line has a string more than it had without the
  /// text.
  std::optional<std::size_t> turned_inside_out() const {
    const auto in_rest = [](const std::vector<std::size_t>& strings, std::size_t begin) {
      return std::ranges::any_of(strings, [&](std::size_t at) { return at >= begin; });
    };
    if (!in_rest(undone_.strings, end_)) return std::nullopt;
    if (in_rest(undone_in(before_ + rest_, place_).strings, begin_)) return std::nullopt;
    const std::size_t quote = whole_.find_last_of("\"'`", end_ - 1);
    return quote == std::string::npos ? std::nullopt : std::optional(quote);
  }

  /// Whether a comment would hide the rest of the line. A mark without a blank before it may be none,
  /// as in "http://" and "${name#".
  bool hides_rest() const {
    if (!undone_.comment || is_blank(rest_)) return false;
    const std::size_t at = *undone_.comment;
    return at == 0 || is_space(whole_[at - 1]) || whole_[at - 1] == '\n';
  }

  /// Closers from `begin` on that close nothing.
  std::ptrdiff_t lost_from(const Undone& undone, std::size_t begin) const {
    std::ptrdiff_t count = 0;
    for (std::size_t i = 0; i < undone.closing.size(); ++i)
      count += undone.closing[i].at >= begin && !closes_one_above(undone, i) ? 1 : 0;
    return count;
  }

  /// Where closers in the rest of the line lose their partners: the text's last closer of a bracket
  /// that it did not open, else its last opener that stays open. The first go when fit() asks again.
  std::optional<std::size_t> taken_from_rest() const {
    const std::ptrdiff_t lost = lost_from(undone_, end_);
    if (lost == 0) return std::nullopt;
    // What the text covers was there without it.
    const Undone without =
        undone_in(before_ + std::string(place_.rest.substr(0, replaced_)) + rest_, place_);
    if (lost <= lost_from(without, begin_ + replaced_)) return std::nullopt;
    std::optional<std::size_t> last;
    const auto take = [&](std::size_t at) {
      if (ours(at) && (!last || at > *last)) last = at;
    };
    for (const Pair& pair : undone_.pairs)
      if (pair.open < begin_) take(pair.close);
    for (const Bracket& bracket : undone_.closing) take(bracket.at);
    if (last) return last;
    for (const Bracket& bracket : undone_.open) take(bracket.at);
    return last;
  }

  const CursorContext& place_;
  const std::string& before_;
  std::size_t replaced_;  ///< bytes of the line's rest that the text covers
  std::string rest_;
  std::size_t begin_, end_;  ///< of the text, in whole_
  std::string whole_;
  Undone undone_;
};

}  // namespace

std::size_t balanced_part(std::string_view text, const CursorContext& place, std::size_t replaced) {
  if (place.language.prose || text.empty()) return text.size();
  return Check(text, place, replaced).first_offence().value_or(text.size());
}

}  // namespace efimd::completion
