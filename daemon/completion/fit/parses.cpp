#include "daemon/completion/fit/parses.h"

#include <algorithm>
#include <optional>
#include <string>

#include "daemon/completion/fit/fit_lines.h"
#include "daemon/completion/fit/unit_ends.h"
#include "daemon/syntax/continuation.h"

namespace efimd::completion {

namespace {

/// Texts that are tried with the rest of the line; each is a parse.
constexpr int kTriesMax = 3;

bool is_capital(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/// A word of three letters or more, all of them capitals.
bool names_macro(std::string_view line) {
  constexpr std::ptrdiff_t kLettersMin = 3;
  for (auto at = line.begin(); at != line.end();) {
    const auto begin = std::find_if(at, line.end(), is_word);
    at = std::find_if_not(begin, line.end(), is_word);
    if (at - begin >= kLettersMin && std::all_of(begin, at, is_capital)) return true;
  }
  return false;
}

/// A word, or signs that may be one token.
bool is_token(std::string_view text) {
  text = trim_end(text);
  return std::ranges::all_of(text, is_word) ||
         (text.find_first_of("()[]{};,\"'` \t\n") == std::string_view::npos &&
          std::ranges::none_of(text, is_word));
}

class Parsing {
 public:
  Parsing(const CursorContext& place, std::size_t replaced)
      : place_(place),
        replaced_(std::min(replaced, place.rest.size())),
        rest_(trim_end(place.rest.substr(replaced_))) {
    const std::string_view above = window_above(place);
    const text::LineIndex& lines = place.snapshot.lines();
    begins_in_file_ = above.size() < lines.start(lines.line_of(place.cursor));
    // Where a text is read from inside a string of several lines, code and strings change places.
    can_judge_ = !begins_in_file_ ||
                 (!above.empty() && scan(above, place.language).end.in == place.state.in);
    window_ = std::string(above) + place.line_before;
  }

  /// False if the grammar would read another text than there is.
  bool can_judge() const { return can_judge_; }

  std::size_t part_of(std::string_view text) const {
    std::optional<std::size_t> bare;  // how much of the line's rest parses without the text
    for (int tries = 0; tries < kTriesMax; ++tries) {
      const std::optional<std::size_t> good = parsed(text, rest_);
      if (!good) return text.size();
      if (*good < text.size()) {
        text = text.substr(0, last_end(text, *good));
        // What parsed up to here does so again; what is new is the rest behind it.
        if (rest_.empty() || text.empty()) return text.size();
        continue;
      }
      if (rest_.empty() || *good == text.size() + rest_.size()) return text.size();
      // With what the text covers: "def f(^):" has no ":" that parses without its ")".
      if (!bare) bare = parsed({}, trim_end(place_.rest));
      if (!bare || replaced_ + *good - text.size() >= *bare) return text.size();
      text = text.substr(0, last_end(text, text.size() - 1));
      if (text.empty()) return 0;
    }
    return 0;
  }

 private:
  /// Bytes of `text` and `rest` that have no offence; nullopt if the grammar does not say.
  std::optional<std::size_t> parsed(std::string_view text, std::string_view rest) const {
    const std::string whole = std::string(text).append(rest);
    const std::size_t size = finished(whole);
    const std::optional<std::size_t> good = syntax::accepted_bytes(
        place_.grammar, window_, std::string_view(whole).substr(0, size), place_.parse_time_us);
    if (!good) return std::nullopt;
    return *good >= size || is_excused(whole, *good) ? whole.size() : *good;
  }

  /// Up to a comment or string of several lines that it does not end.
  std::size_t finished(std::string_view text) const {
    const Lexical end =
        scan(place_.line_before + std::string(text), place_.language, place_.state).end;
    if (end.in == Lexical::In::kCode || end.until == "\n") return text.size();
    return end.begin - std::min(end.begin, place_.line_before.size());
  }

  bool is_excused(std::string_view text, std::size_t at) const {
    if (begins_in_file_ && text[at] == '}') return true;
    if (rest_.empty() && is_token(text.substr(at))) return true;
    if (place_.grammar != syntax::Grammar::kC && place_.grammar != syntax::Grammar::kCpp)
      return false;
    const std::string up_to = window_ + std::string(text.substr(0, at));
    const std::string_view before = trim_end(up_to);
    const std::size_t line = up_to.find_first_not_of(" \t", up_to.rfind('\n') + 1);
    if (line != std::string::npos && up_to[line] == '#') return true;
    if (text[at] == '{' && before.ends_with('=')) return true;
    return names_macro(before.substr(before.find_last_of(";{}") + 1));
  }

  /// The last end of a unit in the first `good` bytes.
  std::size_t last_end(std::string_view text, std::size_t good) const {
    // A statement that must not end where it does is not right without its end.
    const std::size_t most = text[good] == ';' && good > 0 ? good - 1 : good;
    std::size_t last = 0;
    for (const std::size_t end : unit_ends(text, place_))
      if (end <= most && !is_blank(text.substr(0, end))) last = std::max(last, end);
    return last;
  }

  const CursorContext& place_;
  const std::size_t replaced_;   ///< bytes of the line's rest that the text covers
  const std::string_view rest_;  ///< what it does not
  std::string window_;           ///< what the grammar reads before the text
  bool begins_in_file_ = false;  ///< the window does, and not with it
  bool can_judge_ = true;
};

}  // namespace

// At 1,500 random cursors of each language, in this tree, Python's library, Redis, Cobra, pflag, zod,
// Gson, ripgrep and regex-syntax, the rest of the line was put back ("true"), with the three lines
// under it ("four"), up to a random byte ("part"), or another line's rest in its place ("wrong"). In
// percent of what would be shown, F-8 cuts or silences:
//
//           true   four   part   wrong
//   C       0.07   0.28   0.07    20.8
//   C++     0      0.34   0       25.8
//   Python  0      0      0       30.0
//   Go      0      0      0       29.2
//   Rust    0      0      0.23    30.5
//   TS      0.07   0      0.07    37.6
//   TSX, JS 0      0      0       39.8
//   Java    0      0      0       41.5
//
// fit() with it took 0.3 to 0.8 ms of a core (p50), 3.7 ms at p99 and 13.2 ms at most, of 2 cores of
// a Xeon (AVX-512), others at work, 26 November 2026.
std::size_t parsing_part(std::string_view text, const CursorContext& place, std::size_t replaced) {
  if (place.grammar == syntax::Grammar::kNone || !place.line_is_short || text.empty())
    return text.size();
  const Parsing parsing(place, replaced);
  return parsing.can_judge() ? parsing.part_of(text) : text.size();
}

}  // namespace efimd::completion
