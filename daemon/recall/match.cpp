#include "daemon/recall/match.h"

#include <algorithm>
#include <bit>
#include <climits>
#include <cstdint>
#include <cstring>

namespace efimd::recall {

namespace {

/// Longer lines are compared up to here.
constexpr std::size_t kLineBytesMax = 256;
/// Bytes looked at for a line with content on each side; blank stretches beyond it end the text.
constexpr std::size_t kReachBytes = 2048;
/// A cursor with more of its line before it is found by this line alone.
constexpr std::size_t kTypedOverLineEnd = 48;

std::size_t indent_of(std::string_view text, std::size_t begin) {
  std::size_t columns = 0;
  for (; begin < text.size() && is_blank(text[begin]); ++begin)
    columns += text[begin] == '\t' ? 4 : 1;
  return columns;
}

/// The content of the line that ends at `end`, looking back kLineBytesMax bytes at most.
std::string_view line_before(std::string_view text, std::size_t end) {
  const std::size_t reach = end > kLineBytesMax ? end - kLineBytesMax : 0;
  std::size_t begin = end;
  while (begin > reach && !is_line_end(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

std::size_t skip_back_space(std::string_view text, std::size_t at) {
  const std::size_t reach = at > kReachBytes ? at - kReachBytes : 0;
  while (at > reach && (is_line_end(text[at - 1]) || is_blank(text[at - 1]))) --at;
  return at;
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  const std::size_t reach = std::min(text.size(), at + kReachBytes);
  while (at < reach && (is_blank(text[at]) || is_line_end(text[at]))) ++at;
  return at;
}

/// The content of the line from `at` on, as far as it counts.
std::string_view line_from(std::string_view text, std::size_t at) {
  const std::string_view seen = text.substr(0, at + kLineBytesMax);
  return trimmed(seen.substr(at, line_end(seen, at) - at));
}

/// What stands between a line's end and the cursor's content: how many line ends, then blanks.
struct Gap {
  std::size_t line_ends = 0;
  std::size_t end = 0;
};

Gap gap_from(std::string_view text, std::size_t at) {
  Gap gap;
  for (gap.end = at; gap.end < text.size(); ++gap.end) {
    const char c = text[gap.end];
    if (is_line_end(c)) ++gap.line_ends;
    if (!is_line_end(c) && !is_blank(c)) break;
  }
  return gap;
}

bool ends_line(std::string_view before) {
  const std::string_view line = trimmed(before);
  return !line.empty() && std::string_view(";{}:,").find(line.back()) != std::string_view::npos;
}

bool leaves_bracket_open(std::string_view line) {
  int depth = 0;
  for (const char c : line) {
    if (c == '(' || c == '[') ++depth;
    if ((c == ')' || c == ']') && depth > 0) --depth;
  }
  return depth > 0;
}

/// In sums of a byte, which vector instructions add up 16 or 32 at a time. std::ranges::count() took nine tenths of judge().
std::size_t line_feeds_in(std::string_view text) {
  constexpr std::size_t kSumMax = 255;
  std::size_t found = 0;
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kSumMax))) {
    unsigned char sum = 0;
    for (const char c : text.substr(0, kSumMax))
      sum += static_cast<unsigned char>(c == '\n' ? 1 : 0);
    found += sum;
  }
  return found;
}

/// Counted over the first bytes, estimated beyond them.
std::size_t lines_between(std::string_view text, std::size_t a, std::size_t b) {
  constexpr std::size_t kCounted = 2048;
  const std::size_t from = std::min(a, b), bytes = std::max(a, b) - from;
  const std::string_view between = text.substr(from, std::min(bytes, kCounted));
  const std::size_t lines = line_feeds_in(between);
  return bytes <= kCounted ? lines : std::max<std::size_t>(lines, 1) * (bytes / kCounted);
}

/// How much a match's vote counts. An agreement of 30 bytes is worth nine of 10 bytes.
double weight_of(const Match& match) {
  double weight = static_cast<double>(match.agreed);
  weight *= weight * (1.0 + static_cast<double>(match.lines_above));
  if (match.source == Source::kThisFile) weight *= 2;
  if (match.fits_below) weight *= 2;
  return match.same_indent_step ? weight : weight * 0.2;
}

}  // namespace

bool are_of_one_file(const Match& a, const Match& b) {
  // No file is in two batches, or twice in one.
  if (a.batch_path != nullptr && b.batch_path != nullptr) return a.batch_path == b.batch_path;
  return a.path() == b.path();
}

// Loops of their own: std::string_view::find_first_of() and its like call memchr for each byte.
std::string_view trimmed(std::string_view line) {
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  return line;
}

std::size_t common_suffix(std::string_view a, std::string_view b) {
  static_assert(std::endian::native == std::endian::little);
  const std::size_t most = std::min(a.size(), b.size());
  const char *const a_end = a.data() + a.size(), *const b_end = b.data() + b.size();
  std::size_t equal = 0;
  // In words of eight bytes: files that were copied agree over hundreds.
  for (std::uint64_t left = 0, right = 0; equal + sizeof(left) <= most; equal += sizeof(left)) {
    std::memcpy(&left, a_end - equal - sizeof(left), sizeof(left));
    std::memcpy(&right, b_end - equal - sizeof(right), sizeof(right));
    if (left != right)
      return equal + static_cast<std::size_t>(std::countl_zero(left ^ right)) / CHAR_BIT;
  }
  while (equal < most && a_end[-1 - static_cast<std::ptrdiff_t>(equal)] ==
                             b_end[-1 - static_cast<std::ptrdiff_t>(equal)])
    ++equal;
  return equal;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t equal = 0;
  for (std::uint64_t left = 0, right = 0; equal + sizeof(left) <= most; equal += sizeof(left)) {
    std::memcpy(&left, a.data() + equal, sizeof(left));
    std::memcpy(&right, b.data() + equal, sizeof(right));
    if (left != right)
      return equal + static_cast<std::size_t>(std::countr_zero(left ^ right)) / CHAR_BIT;
  }
  while (equal < most && a[equal] == b[equal]) ++equal;
  return equal;
}

Surroundings::Surroundings(std::string_view text, std::size_t at, const Surroundings* like) {
  const std::string_view line = line_before(text, at);
  typed = line;
  while (!typed.empty() && is_blank(typed.front())) typed.remove_prefix(1);
  std::size_t end = at - line.size();
  const std::size_t begin = end;
  for (std::size_t i = 0; i < kLines && end > 0; ++i) {
    end = skip_back_space(text, end);
    const std::string_view found = line_before(text, end);
    above[i] = trimmed(found);
    end -= found.size();
    if (i == 0)
      indent_step = static_cast<std::ptrdiff_t>(indent_of(text, begin)) -
                    static_cast<std::ptrdiff_t>(indent_of(text, end));
    if (like != nullptr && above[i] != like->above[i]) break;
  }
  const std::size_t under = skip_space(text, line_end(text.substr(0, at + kReachBytes), at));
  if (like == nullptr || text.substr(under, 1) == like->below.substr(0, 1))
    below = line_from(text, under);
}

Asked::Asked(std::string_view text, std::size_t cursor)
    : text_(text),
      cursor_(std::min(cursor, text.size())),
      line_begin_(recall::line_begin(text, cursor_)),
      line_end_(recall::line_end(text, cursor_)),
      around_(text, cursor_),
      tail_(trimmed(text.substr(cursor_, line_end_ - cursor_))) {
  const std::string_view before = text_.substr(line_begin_, cursor_ - line_begin_);
  if (trimmed(before).empty())
    place_ = Place::kStart;
  else if (tail_.empty() && ends_line(before))
    place_ = Place::kFinished;
  open_bracket_ = leaves_bracket_open(around_.typed);
  if (place_ != Place::kStart) probes_.push_back(probe_at(text_, cursor_));
  const Probe above = probe_above(text_, cursor_);
  if (above.over_line_end && around_.typed.size() <= kTypedOverLineEnd) probes_.push_back(above);
  if (above.over_line_end) line_ends_ = gap_from(text_.substr(0, cursor_), above.anchor).line_ends;
}

namespace {

/// A text without its last byte, and without what is left of a word then.
std::string_view without_cut_word(std::string_view text) {
  std::size_t end = text.size() - 1;
  while (end > 0 && is_word(text[end - 1]) && is_word(text[end])) --end;
  return text.substr(0, end);
}

}  // namespace

bool Asked::after_closer() const {
  return cursor_ > line_begin_ &&
         std::string_view(")]}\"'`>").find(text_[cursor_ - 1]) != std::string_view::npos;
}

std::string_view Asked::context(const Probe& probe) const {
  const std::size_t bytes = std::min(probe.anchor, kContextBytesMax);
  return text_.substr(probe.anchor - bytes, bytes);
}

std::optional<Match> Asked::match(const Probe& probe, std::string_view text, std::size_t at,
                                  std::size_t agreed) const {
  Match match{.text = text, .agreed = agreed};
  if (!probe.over_line_end) {
    const std::string_view forward = typed_since(probe);
    if (!text.substr(at).starts_with(forward)) return std::nullopt;
    match.goes_on = at + forward.size();
    match.agreed += forward.size();
    return match;
  }
  const Gap theirs = gap_from(text, at);
  if (theirs.line_ends < line_ends_ || theirs.line_ends == 0) return std::nullopt;
  const std::string_view typed = around_.typed;
  if (theirs.line_ends > line_ends_) {
    // What comes next there is a blank line: a vote for nothing.
    if (!typed.empty()) return std::nullopt;
    match.goes_on = at;
    return match;
  }
  if (!text.substr(theirs.end).starts_with(typed)) return std::nullopt;
  match.goes_on = theirs.end + typed.size();
  match.agreed += typed.size() + line_ends_;
  return match;
}

void Asked::judge(Match& match) const {
  const std::string_view rest = match.text.substr(match.goes_on, kContinuationBytesMax + 1);
  match.continuation = rest.substr(0, recall::line_end(rest, 0));
  match.is_cut = match.continuation.size() > kContinuationBytesMax;
  if (match.is_cut) match.continuation = without_cut_word(match.continuation);
  while (!match.continuation.empty() && is_blank(match.continuation.back()))
    match.continuation.remove_suffix(1);
  const Surroundings there(match.text, match.goes_on, &around_);
  while (match.lines_above < Surroundings::kLines && !there.above[match.lines_above].empty() &&
         there.above[match.lines_above] == around_.above[match.lines_above])
    ++match.lines_above;
  match.fits_below = !there.below.empty() && there.below == around_.below;
  match.same_indent_step = there.indent_step == around_.indent_step;
  if (match.source == Source::kThisFile)
    match.distance_lines = lines_between(text_, cursor_, match.goes_on);
  match.weight = weight_of(match);
}

Place place_at(std::string_view text, std::size_t cursor) { return Asked(text, cursor).place(); }

}  // namespace efimd::recall
