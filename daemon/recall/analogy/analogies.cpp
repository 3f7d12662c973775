#include "daemon/recall/analogy/analogies.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

#include "daemon/recall/analogy/alignment.h"
#include "daemon/recall/analogy/renaming.h"

namespace efimd::recall {

namespace {

/// What is read of the document on both sides of the cursor. Three times as much finds nothing more.
constexpr std::size_t kAboveBytesMax = 4 * 1024, kBelowBytesMax = 2 * 1024;
/// Longer lines are built as no other.
constexpr std::size_t kAnalogyLineBytesMax = 256;
constexpr std::size_t kLinesAboveMax = 3;
/// At a line's start, lines above that must be built alike: one shows more, but nothing right.
constexpr std::size_t kLinesAboveAtStart = 2;
constexpr std::size_t kAnalogiesMax = 3;
/// Lines built alike that are tried for them, the best ones.
constexpr std::size_t kTriedMax = 12;

/// A line with content, without its blanks.
struct Content {
  std::string_view text;
  std::size_t number;  ///< of the line, from the window's beginning
};

/// The lines around the cursor, but for its own.
struct OwnLines {
  std::string_view window;
  std::vector<Content> lines = {};
  std::size_t next = 0;         ///< index of the first one below the cursor
  std::size_t cursor_line = 0;  ///< its number
};

OwnLines lines_around(const Asked& asked) {
  const std::string_view text = asked.text();
  const std::size_t begin = asked.line_begin() - std::min(asked.line_begin(), kAboveBytesMax);
  const std::size_t end = std::min(text.size(), asked.line_end() + kBelowBytesMax);
  OwnLines own{.window = text.substr(begin, end - begin)};
  constexpr std::size_t kBytesPerLine = 32;
  own.lines.reserve(own.window.size() / kBytesPerLine);
  std::size_t number = 0;
  for (std::size_t at = begin; at <= end; ++number) {
    const std::size_t stop = std::min(end, line_end(text, at));
    const std::string_view content = trimmed(text.substr(at, stop - at));
    if (at == asked.line_begin()) {
      own.next = own.lines.size();
      own.cursor_line = number;
    } else if (!content.empty()) {
      own.lines.push_back({content, number});
    }
    at = stop + 1;
  }
  return own;
}

/// Whether a word may stand for the other, or they are the same sign; of their first or last bytes.
bool may_stand_for(char theirs, char ours) {
  return theirs == ours || (is_word(theirs) && is_word(ours));
}

bool is_blank_at_end(std::string_view text) { return !text.empty() && is_blank(text.back()); }

/// A line that is built as the cursor's, as far as that is typed.
struct Analogy {
  Alignment alignment = {};
  std::size_t lines_above = 0;     ///< built alike, too
  std::size_t distance_lines = 0;  ///< from the cursor
  std::string_view word = {};      ///< theirs, where the user is in a word
  std::string_view rest = {};      ///< of their line
  auto rank() const { return std::tuple(~lines_above, ~alignment.same(), distance_lines); }
};

class Finder {
 public:
  explicit Finder(const Asked& asked) : typed_(asked.around().typed), own_(lines_around(asked)) {
    std::size_t begin = typed_.size();
    while (begin > 0 && is_word(typed_[begin - 1])) --begin;
    word_ = typed_.substr(begin);
  }

  /// The best ones first.
  std::vector<Analogy> analogies() const {
    constexpr std::size_t kKeptMax = 4 * kTriedMax;  // a file may be one line again and again
    std::vector<Analogy> found;
    for (std::size_t line = 0; line < own_.lines.size(); ++line) {
      if (auto analogy = analogy_of(line)) found.push_back(*analogy);
      if (found.size() == kKeptMax) keep_best(found);
    }
    keep_best(found);
    return found;
  }

  /// How the user's line goes on as theirs does; nullopt if their line says nothing of the user's names.
  std::optional<std::string> continuation(const Analogy& analogy) const {
    Renaming renaming;
    for (const auto& [theirs, ours] : analogy.alignment.pairs())
      if (!renaming.add(theirs, ours)) return std::nullopt;
    std::string out;
    bool renamed = false;
    if (!word_.empty()) {
      const std::optional<std::string> new_word = renaming.word(analogy.word);
      const std::string_view whole = new_word ? *new_word : analogy.word;
      if (whole.starts_with(word_)) {
        out = whole.substr(word_.size());
        renamed = new_word && !out.empty();
      } else if (!is_known(word_) || !renaming.add(analogy.word, word_)) {
        return std::nullopt;  // a word that may still grow stands for none of theirs
      }
    }
    if (renaming.empty()) return std::nullopt;
    if (const auto rest = renaming.text(analogy.rest)) {
      out += *rest;
      renamed = true;
    } else {
      out += analogy.rest;
    }
    if (!renamed || out.size() > kContinuationBytesMax) return std::nullopt;
    return out;
  }

 private:
  static void keep_best(std::vector<Analogy>& found) {
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(kTriedMax, found.size()));
    std::ranges::partial_sort(found, end, {}, &Analogy::rank);
    found.erase(end, found.end());
  }

  bool fits_above(std::size_t line, std::size_t above) const {
    return above < kLinesAboveMax && above < own_.next && above < line &&
           line - 1 - above != own_.next - 1 - above;
  }

  std::optional<Analogy> analogy_of(std::size_t line) const {
    // Most lines end here.
    if (!may_be_alike(line)) return std::nullopt;
    Analogy best;
    if (!add_typed(line, best)) return std::nullopt;
    Alignment above;
    for (std::size_t lines = 0; fits_above(line, lines); ++lines) {
      if (!above.add_line(own_.lines[line - 1 - lines].text,
                          own_.lines[own_.next - 1 - lines].text))
        break;
      Analogy more{.alignment = above};
      if (!add_typed(line, more)) break;
      best = more;
      best.lines_above = lines + 1;
    }
    if (best.alignment.same_bytes() < kAgreedBytesMin ||
        (typed_.empty() && best.lines_above < kLinesAboveAtStart))
      return std::nullopt;
    const std::size_t number = own_.lines[line].number;
    best.distance_lines = std::max(number, own_.cursor_line) - std::min(number, own_.cursor_line);
    return best;
  }

  /// By what two bytes tell.
  bool may_be_alike(std::size_t line) const {
    const std::string_view content = own_.lines[line].text;
    if (content.size() > kAnalogyLineBytesMax) return false;
    if (!typed_.empty()) return may_stand_for(content[0], typed_[0]);
    if (!fits_above(line, 0)) return false;
    const std::string_view theirs = own_.lines[line - 1].text,
                           ours = own_.lines[own_.next - 1].text;
    return may_stand_for(theirs[0], ours[0]) && may_stand_for(theirs.back(), ours.back());
  }

  /// What is typed of the cursor's line. Of the word at the cursor it is not known yet what it stands for.
  bool add_typed(std::size_t line, Analogy& analogy) const {
    const std::string_view content = own_.lines[line].text;
    Tokens theirs(content), ours(typed_);
    for (;;) {
      const std::string_view our = ours.next();
      if (our.empty()) break;
      const std::string_view their = theirs.next();
      if (their.empty()) return false;
      if (!word_.empty() && ours.end() == typed_.size()) {
        analogy.word = their;
        break;
      }
      if (!analogy.alignment.add(their, our)) return false;
    }
    analogy.rest = content.substr(theirs.end());
    if (is_blank_at_end(typed_)) analogy.rest = trimmed(analogy.rest);
    return true;
  }

  /// Whether the word stands elsewhere in the window, so that it may be whole.
  bool is_known(std::string_view word) const {
    const std::string_view window = own_.window;
    const auto stands_at = [&](std::size_t at) {
      const std::size_t end = at + word.size();
      return window.data() + at != word.data() && (at == 0 || !is_word(window[at - 1])) &&
             (end == window.size() || !is_word(window[end]));
    };
    std::size_t at = window.find(word);
    while (at != std::string_view::npos && !stands_at(at)) at = window.find(word, at + 1);
    return at != std::string_view::npos;
  }

  std::string_view typed_;  ///< of the cursor's line, without indentation
  std::string_view word_;   ///< its end, if it is a word's
  OwnLines own_;
};

}  // namespace

std::vector<Match> Analogies::find(const Asked& asked, std::string_view path) {
  const bool finished = asked.place() == Place::kFinished && !asked.has_open_bracket();
  if (finished || asked.around().typed.size() >= kAnalogyLineBytesMax) return {};
  const Finder finder(asked);
  std::vector<Match> matches;
  for (const Analogy& analogy : finder.analogies()) {
    if (matches.size() == kAnalogiesMax) break;
    auto continuation = finder.continuation(analogy);
    if (!continuation || continuation->empty()) continue;
    const std::string_view text = texts_.emplace_back(std::move(*continuation));
    const double bytes = static_cast<double>(analogy.alignment.same_bytes());
    // As of other lines of this file, but lines above are equal in part only, and count as one.
    const double weight = 2 * bytes * bytes * static_cast<double>(1 + analogy.lines_above);
    matches.push_back({.text = text,
                       .agreed = analogy.alignment.same_bytes(),
                       .source = Source::kThisFile,
                       .scanned_path = path,
                       .is_analogy = true,
                       .continuation = text,
                       .distance_lines = analogy.distance_lines,
                       .weight = weight});
  }
  std::ranges::stable_sort(matches, std::ranges::greater{}, &Match::weight);
  return matches;
}

}  // namespace efimd::recall
