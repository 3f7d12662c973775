#include "daemon/completion/brackets.h"

#include <algorithm>

namespace efimd::completion {

namespace {

bool is_quote(char c) { return c == '"' || c == '\'' || c == '`'; }

/// The quote that closes the string opened at `open`; npos when this line has none.
std::size_t closing_quote(std::string_view line, std::size_t open) {
  for (std::size_t at = open + 1; at < line.size(); ++at) {
    if (line[at] == '\\') {
      ++at;
    } else if (line[at] == line[open]) {
      return at;
    }
  }
  return std::string_view::npos;
}

bool is_lifetime(std::string_view line, std::size_t quote) {
  return line[quote] == '\'' && quote > 0 && (line[quote - 1] == '&' || line[quote - 1] == '<');
}

bool is_angle(std::string_view line, std::size_t at) {
  const char before = at > 0 ? line[at - 1] : '\0';
  const char behind = at + 1 < line.size() ? line[at + 1] : '\0';
  if (line[at] == '<') return behind != '=';
  return line[at] == '>' && behind != '=' && before != '-' && before != '=';
}

}  // namespace

bool is_opener(char c) { return c == '(' || c == '[' || c == '{' || c == '<'; }
bool is_closer(char c) { return c == ')' || c == ']' || c == '}' || c == '>'; }

std::vector<Bracket> brackets_of(std::string_view line, Angles angles) {
  std::vector<Bracket> brackets;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (c == '\\') {
      ++at;
    } else if (is_quote(c) && !is_lifetime(line, at)) {
      if (const std::size_t end = closing_quote(line, at); end != std::string_view::npos) at = end;
    } else if (c == '<' || c == '>') {
      if (angles == Angles::kCounted && is_angle(line, at)) brackets.push_back({at, c});
    } else if (is_opener(c) || is_closer(c)) {
      brackets.push_back({at, c});
    }
  }
  return brackets;
}

int depth_after(int depth, std::string_view line, std::size_t forgiving) {
  const int floor = depth;
  for (const Bracket& bracket : brackets_of(line)) {
    depth += is_opener(bracket.c) ? 1 : -1;
    if (bracket.at < forgiving) depth = std::max(depth, floor);
  }
  return depth;
}

}  // namespace efimd::completion
