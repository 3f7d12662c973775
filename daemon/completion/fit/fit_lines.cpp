#include "daemon/completion/fit/fit_lines.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "base/utf8.h"
#include "daemon/completion/fit/repeats.h"
#include "daemon/text/indentation.h"

namespace efimd::completion {

namespace {

constexpr std::string_view kSpace = " \t\r\n";

bool is_control(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c < 0x20 || (c >= 0x7F && c < 0xA0);
}

std::string_view trim(std::string_view text) {
  text = trim_end(text);
  return text.substr(std::min(text.find_first_not_of(kSpace), text.size()));
}

/// Spaces that the model takes for one level, where the buffer has tabs: 4, unless a line shows 2.
int model_step(const std::vector<std::string_view>& lines) {
  int step = 4;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string_view blanks = text::leading_blanks(lines[i]);
    const auto spaces = std::ranges::count(blanks, ' ');
    if (!is_blank(lines[i]) && spaces % 4 == 2) step = 2;
  }
  return step;
}

std::string converted(std::string_view blanks, const text::Indentation& buffer, int step) {
  const auto tabs = std::ranges::count(blanks, '\t');
  const auto spaces = static_cast<std::ptrdiff_t>(blanks.size()) - tabs;
  const auto repeated = [](std::ptrdiff_t count, char c) {
    return std::string(static_cast<std::size_t>(count), c);
  };
  if (buffer.tabs) return repeated(tabs + spaces / step, '\t') + repeated(spaces % step, ' ');
  return repeated(tabs * buffer.spaces + spaces, ' ');
}

/// The lines after the cursor's line that are not blank, `count` at most.
std::vector<std::string_view> following_lines(const CursorContext& place, std::size_t count) {
  std::vector<std::string_view> lines;
  const text::LineIndex& index = place.snapshot.lines();
  for (std::size_t line = index.line_of(place.cursor) + 1;
       line < index.line_count() && lines.size() < count; ++line)
    if (const std::string_view content = place.snapshot.line(line); !is_blank(content))
      lines.push_back(content);
  return lines;
}

bool same(std::string_view ours, std::string_view theirs, const Language& language) {
  return trim(ours) == trim(theirs) || nearly_equal(ours, theirs, language);
}

/// Whether `ours` (not blank, in order) are what `theirs` begins with. A single line must agree in
/// its indentation, too: "}" of another block is no repetition. The last of several may be cut
/// short by a budget.
bool repeats(const std::vector<std::string_view>& ours, const std::vector<std::string_view>& theirs,
             const Language& language) {
  if (ours.empty() || ours.size() > theirs.size()) return false;
  if (ours.size() == 1)
    return text::leading_blanks(ours[0]) == text::leading_blanks(theirs[0]) &&
           same(ours[0], theirs[0], language);
  for (std::size_t i = 0; i + 1 < ours.size(); ++i)
    if (!same(ours[i], theirs[i], language)) return false;
  const std::string_view last = theirs[ours.size() - 1];
  return trim(last).starts_with(trim(ours.back())) || same(ours.back(), last, language);
}

/// Whether `ours` is one line that the first of `theirs` goes on, with another word or sign.
bool begins(const std::vector<std::string_view>& ours,
            const std::vector<std::string_view>& theirs) {
  if (ours.size() != 1 || theirs.empty() || !has_word(ours[0])) return false;
  const std::string_view line = ours[0], next = theirs[0];
  return next.size() > line.size() && next.starts_with(line) &&
         !(is_word(line.back()) && is_word(next[line.size()]));
}

/// Whether what stands below the line may well be indented deeper.
bool opens_below(std::string_view line) {
  constexpr auto kLast =
      std::to_array<std::string_view>({"then", "do", "else", "where", "begin", "repeat", "try"});
  constexpr auto kFirst =
      std::to_array<std::string_view>({"if", "for", "while", "else", "elif", "switch", "foreach"});
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  line = trim(line);
  if (line.empty() || std::string_view("([{:=>,&|+-*/?.\\").find(line.back()) != line.npos)
    return true;
  const std::string_view last = line.substr(line.find_last_not_of(kLetters) + 1);
  const std::string_view first = line.substr(0, line.find_first_not_of(kLetters));
  return std::ranges::find(kLast, last) != kLast.end() ||
         std::ranges::find(kFirst, first) != kFirst.end();
}

/// Whether the code around the cursor ends its statements with their lines, not with ";".
bool leaves_semicolons_out(const CursorContext& place) {
  constexpr int kWithoutMin = 10, kShare = 10;
  int with = 0, without = 0;
  for (std::string_view line : split_lines(text_around(place))) {
    line = trim(line);
    if (line.empty() || line[0] == '*' || line.starts_with("//")) continue;
    with += line.ends_with(';') ? 1 : 0;
    without += is_word(line.back()) || is_quote(line.back()) || line.ends_with(')') ? 1 : 0;
  }
  return without >= kWithoutMin && kShare * with < without;
}

}  // namespace

std::string_view trim_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

bool is_blank(std::string_view text) { return trim_end(text).empty(); }

bool is_space(char c) { return c == ' ' || c == '\t'; }

bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
         ((byte | 0x20U) >= 'a' && (byte | 0x20U) <= 'z');
}

bool has_word(std::string_view text) { return std::ranges::any_of(text, is_word); }

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string_view::npos;
       begin = end + 1)
    lines.push_back(text.substr(begin, end - begin));
  lines.push_back(text.substr(begin));
  return lines;
}

std::string readable(std::string_view generated) {
  std::string text;
  text.reserve(generated.size());
  for (std::size_t at = 0; at < generated.size();) {
    const utf8::CodePoint point = utf8::decode(generated, at);
    if (!point.valid || is_control(point.value) || point.value == U'\uFFFD') break;
    const auto length = static_cast<std::size_t>(point.length);
    if (point.value != U'\r') {
      text += generated.substr(at, length);
    } else if (at + 1 == generated.size() || generated[at + 1] != '\n') {
      text += '\n';
    }
    at += length;
  }
  return text;
}

std::string with_indentation_of(std::string_view text, const CursorContext& place) {
  const std::string_view line_before = place.line_before;
  const std::vector<std::string_view> lines = split_lines(text);
  if (lines.size() == 1 && !is_blank(line_before)) return std::string(text);
  const text::Indentation buffer = text::indentation_of(place.snapshot.bytes(), place.cursor);
  if (!buffer.known || buffer.mixed) return std::string(text);
  const int step = model_step(lines);
  std::string shaped;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool new_line = i > 0 || is_blank(line_before);
    const std::string_view blanks = new_line ? text::leading_blanks(lines[i]) : std::string_view();
    if (i > 0) shaped += '\n';
    shaped += converted(blanks, buffer, step);
    shaped += lines[i].substr(blanks.size());
  }
  return shaped;
}

std::string_view text_around(const CursorContext& place) {
  constexpr std::size_t kBytesMax = 32 * 1024;
  const std::size_t begin = place.cursor - std::min(place.cursor, kBytesMax);
  return place.snapshot.bytes().substr(begin, 2 * kBytesMax);
}

bool indents_more(std::string_view text, const CursorContext& place) {
  if (place.language.name.empty() || place.language.prose) return false;
  const std::string_view before = place.line_before, own = text::leading_blanks(text);
  if (before.empty() || !is_blank(before) || place.state.in != Lexical::In::kCode) return false;
  if (own.empty() || own == " ") return false;
  std::size_t line = place.snapshot.lines().line_of(place.cursor);
  std::string_view above;
  while (line > 0 && is_blank(above)) above = trim_end(place.snapshot.line(--line));
  return !opens_below(above);
}

std::string without_semicolons(std::string text, const CursorContext& place) {
  if (!place.language.javascript || text.find(';') == std::string::npos) return text;
  if (!leaves_semicolons_out(place)) return text;
  std::string kept;
  for (const std::string_view line : split_lines(text)) {
    if (line.data() != text.data()) kept += '\n';
    kept += line;
    if (!line.ends_with(';') || trim(line).size() == 1) continue;
    const Scan read = scan(place.line_before + kept, place.language, place.state);
    if (read.end.in == Lexical::In::kCode) kept.pop_back();
  }
  return kept;
}

bool repeats_line_above(std::string_view text, const CursorContext& place, std::size_t replaced) {
  const std::size_t line = place.snapshot.lines().line_of(place.cursor);
  if (line == 0 || !place.line_is_short) return false;
  const std::string_view first = split_lines(text).front();
  std::string ours = place.line_before + std::string(first);
  if (first.size() == text.size()) ours += place.rest.substr(std::min(replaced, place.rest.size()));
  return has_word(ours) && trim_end(ours) == trim_end(place.snapshot.line(line - 1));
}

std::string_view without_following_lines(std::string_view text, const CursorContext& place) {
  const std::string_view line_before = place.line_before;
  std::vector<std::string_view> lines = split_lines(text);
  const std::vector<std::string_view> theirs = following_lines(place, lines.size());
  const std::string_view behind = trim(lines[0]);
  if (!is_blank(line_before) && has_word(behind) && !theirs.empty() && behind == trim(theirs[0]))
    return {};
  const std::string first = std::string(line_before) + std::string(lines[0]);
  lines[0] = first;
  for (std::size_t begin = is_blank(line_before) ? 0 : 1; begin < lines.size(); ++begin) {
    if (is_blank(lines[begin])) continue;
    std::vector<std::string_view> ours;
    std::copy_if(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(),
                 std::back_inserter(ours), [](std::string_view line) { return !is_blank(line); });
    if (!repeats(ours, theirs, place.language) && !(begin == 0 && begins(ours, theirs))) continue;
    if (begin == 0) return {};
    return text.substr(0, static_cast<std::size_t>(lines[begin].data() - text.data()));
  }
  return text;
}

}  // namespace efimd::completion
