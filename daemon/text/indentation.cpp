#include "daemon/text/indentation.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace efimd::text {

namespace {

/// Up to kIndentationBytesMax bytes on each side of `near`; cut lines at its ends are the caller's
/// to bear.
std::string_view surroundings(std::string_view text, std::size_t near) {
  near = std::min(near, text.size());
  const std::size_t begin = near - std::min(near, kIndentationBytesMax);
  return text.substr(begin, near - begin + kIndentationBytesMax);
}

/// The line that starts at `begin` and where the next one starts (text.size() + 1 after the last
/// line).
struct Line {
  std::string_view content;
  std::size_t next = 0;
};

Line line_at(std::string_view text, std::size_t begin) {
  const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());
  const std::size_t ending = text.substr(end, 2) == "\r\n" ? 2 : 1;
  return {text.substr(begin, end - begin), end + ending};
}

/// Calls visit(line) for the lines around `near`, at most kIndentationLinesMax of them, first to
/// last.
template <class Visit>
void for_lines_around(std::string_view text, std::size_t near, Visit visit) {
  const std::string_view around = surroundings(text, near);
  std::size_t at = std::min(near, kIndentationBytesMax);
  at = std::min(at, around.size());
  for (std::size_t lines = 0; at > 0 && lines < kIndentationLinesMax / 2;) {
    --at;
    if (around[at] == '\n' || around[at] == '\r') ++lines;
  }
  for (std::size_t lines = 0; at <= around.size() && lines < kIndentationLinesMax; ++lines) {
    const Line line = line_at(around, at);
    visit(line);
    at = line.next;
  }
}

/// Votes of the lines seen so far.
struct IndentationVotes {
  int tabs = 0;
  int spaces = 0;
  /// Lines whose indent differs by so many spaces from that of the line before.
  std::array<int, 9> step{};
  std::ptrdiff_t width = 0;  ///< of the last indent in spaces

  void add(std::string_view line) {
    const std::string_view blanks = leading_blanks(line);
    if (blanks.size() == line.size()) return;  // a blank line says nothing
    if (line[blanks.size()] == '*') return;    // nor does one of a comment: " * text"
    if (blanks.starts_with('\t')) {
      ++tabs;
      return;
    }
    if (!blanks.empty()) ++spaces;
    const auto columns = static_cast<std::ptrdiff_t>(blanks.size());
    const std::ptrdiff_t change = std::abs(columns - width);
    if (change > 0 && change < static_cast<std::ptrdiff_t>(step.size()))
      ++step[static_cast<std::size_t>(change)];
    width = columns;
  }
};

}  // namespace

std::string_view leading_blanks(std::string_view line) {
  return line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()));
}

Indentation indentation_of(std::string_view text, std::size_t near) {
  IndentationVotes votes;
  for_lines_around(text, near, [&](const Line& line) { votes.add(line.content); });
  Indentation out;
  if (votes.tabs + votes.spaces == 0) return out;
  out.known = true;
  out.tabs = votes.tabs > votes.spaces;
  out.mixed = std::min(votes.tabs, votes.spaces) * 4 >= votes.tabs + votes.spaces;
  // Comments and arguments are aligned in steps of one column, so such a step counts only if there
  // is no other.
  const auto most = std::max_element(votes.step.begin() + 2, votes.step.end());
  if (*most > 0)
    out.spaces = static_cast<int>(most - votes.step.begin());
  else if (votes.step[1] > 0)
    out.spaces = 1;
  return out;
}

}  // namespace efimd::text
