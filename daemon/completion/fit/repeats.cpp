#include "daemon/completion/fit/repeats.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "daemon/completion/fit/brackets.h"
#include "daemon/completion/fit/fit_lines.h"

namespace efimd::completion {

namespace {

/// Longer lines are compared byte by byte only.
constexpr std::size_t kLongLine = 1024;

using Tokens = std::vector<std::string_view>;

bool declares(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"const", "let", "var", "auto", "mut", "final", "static", "constexpr", "readonly"});
  return std::ranges::find(kWords, word) != kWords.end();
}

bool jumps(std::string_view word) {
  constexpr auto kWords = std::to_array<std::string_view>(
      {"return", "raise", "throw", "break", "continue", "goto", "co_return"});
  return std::ranges::find(kWords, word) != kWords.end();
}

/// The line without a comment that follows other text.
std::string_view without_comment(std::string_view line, const Language& language) {
  const Lexical end = scan(line, language).end;
  if (end.in != Lexical::In::kComment || is_blank(line.substr(0, end.begin))) return line;
  return line.substr(0, end.begin);
}

/// Words and single signs; all quotes are one.
Tokens tokens_of(std::string_view line) {
  Tokens tokens;
  for (std::size_t at = 0; at < line.size();) {
    std::size_t end = at + 1;
    while (is_word(line[at]) && end < line.size() && is_word(line[end])) ++end;
    const std::string_view token = line.substr(at, end - at);
    if (!is_blank(token)) tokens.push_back(is_quote(token[0]) ? std::string_view("\"") : token);
    at = end;
  }
  return tokens;
}

Tokens normal_form(std::string_view line, const Language& language) {
  Tokens tokens = tokens_of(trim_end(without_comment(line, language)));
  std::erase_if(tokens, declares);
  while (!tokens.empty() && (tokens.back() == ";" || tokens.back() == ",")) tokens.pop_back();
  return tokens;
}

std::size_t common_in_order(const Tokens& a, const Tokens& b) {
  std::vector<std::size_t> best(b.size() + 1, 0);
  for (const std::string_view token : a) {
    std::size_t diagonal = 0;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::size_t above = best[i + 1];
      best[i + 1] = token == b[i] ? diagonal + 1 : std::max(above, best[i]);
      diagonal = above;
    }
  }
  return best.back();
}

}  // namespace

bool same_but_for_form(std::string_view a, std::string_view b, const Language& language) {
  if (std::max(a.size(), b.size()) > kLongLine) return a == b;
  const Tokens form = normal_form(a, language);
  return !form.empty() && form == normal_form(b, language);
}

bool nearly_equal(std::string_view a, std::string_view b, const Language& language) {
  if (same_but_for_form(a, b, language)) return true;
  if (std::max(a.size(), b.size()) > kLongLine) return false;
  const Tokens ours = normal_form(a, language), theirs = normal_form(b, language);
  if (ours.empty() || theirs.empty() || ours[0] != theirs[0] || !jumps(ours[0])) return false;
  const double longer = static_cast<double>(std::max(ours.size(), theirs.size()));
  return static_cast<double>(common_in_order(ours, theirs)) >= kJumpShareMin * longer;
}

}  // namespace efimd::completion
