#include "daemon/syntax/class_macros.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace efimd::syntax {

namespace {

constexpr std::size_t kMacroBytesMin = 3;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::size_t name_end(std::string_view text, std::size_t at) {
  while (at < text.size() && is_name(text[at])) ++at;
  return at;
}

std::size_t blanks_end(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n", at), text.size());
}

bool is_macro(std::string_view name) {
  return name.size() >= kMacroBytesMin && std::ranges::all_of(name, [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

/// Past a macro's arguments, if it has some.
std::size_t arguments_end(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '(') return at;
  const std::size_t close = text.find_first_of("()\n", at + 1);
  return close < text.size() && text[close] == ')' ? blanks_end(text, close + 1) : text.size();
}

/// Where the name of a class begins if only macros stand between it and `at`, the end of "class", and
/// the class is defined here; else `at`.
std::size_t name_behind_macros(std::string_view text, std::size_t at) {
  const std::size_t first = blanks_end(text, at);
  std::size_t name = first, end = name_end(text, name);
  while (is_macro(text.substr(name, end - name))) {
    const std::size_t next = arguments_end(text, blanks_end(text, end));
    const std::size_t next_end = name_end(text, next);
    if (next_end == next || text.substr(next, next_end - next) == "final") break;
    name = next;
    end = next_end;
  }
  std::size_t behind = blanks_end(text, end);
  if (text.substr(behind, name_end(text, behind) - behind) == "final")
    behind = blanks_end(text, behind + std::string_view("final").size());
  const std::string_view rest = text.substr(behind, 2);
  const bool is_defined =
      rest.starts_with('{') || rest.starts_with('<') || (rest.starts_with(':') && rest != "::");
  return name > first && is_defined ? name : at;
}

/// Past blanks and comments.
std::size_t next_code(std::string_view text, std::size_t at) {
  for (at = blanks_end(text, at); at < text.size(); at = blanks_end(text, at)) {
    const std::string_view rest = text.substr(at);
    const bool is_line = rest.starts_with("//");
    if (!is_line && !rest.starts_with("/*")) break;
    const std::size_t end = is_line ? rest.find('\n') : rest.find("*/", 2);
    at += end == std::string_view::npos ? rest.size() : end + (is_line ? 0 : 2);
  }
  return at;
}

/// Whether the line that ends at `end` leaves a declaration open: it is none of the preprocessor's, no
/// comment, and ends no statement or block.
bool leaves_open(std::string_view text, std::size_t end) {
  const std::size_t last = text.substr(0, end).find_last_not_of(" \t\r\n");
  if (last == std::string_view::npos || text[last] == ';' || text[last] == '}') return false;
  if (text.substr(0, last + 1).ends_with("*/")) return false;
  const std::size_t line = text.rfind('\n', last) + 1;  // 0 if it is the first
  const std::string_view begun = text.substr(text.find_first_not_of(" \t", line));
  return !begun.starts_with('#') && !begun.starts_with("//");
}

/// Whether the word is a macro alone on its line before a declaration, such as QT_BEGIN_NAMESPACE. A
/// macro before other words may be the type of a function.
bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  constexpr auto kDeclares = std::to_array<std::string_view>(
      {"class", "struct", "union", "enum", "template", "typedef", "namespace", "using"});
  if (!is_macro(text.substr(begin, end - begin))) return false;
  const std::size_t next = next_code(text, end);
  if (text.substr(end, next - end).find('\n') == std::string_view::npos) return false;
  const std::string_view word = text.substr(next, name_end(text, next) - next);
  if (std::ranges::find(kDeclares, word) == kDeclares.end()) return false;
  const std::size_t line = text.substr(0, begin).rfind('\n') + 1;
  return blanks_end(text, line) == begin && !leaves_open(text, line);
}

}  // namespace

std::string without_class_macros(std::string_view text) {
  std::string plain;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = name_end(text, at);
    const std::string_view word = text.substr(at, end - at);
    const std::size_t begin = std::exchange(at, std::max(end, at + 1));
    if (stands_alone(text, begin, end)) {
      plain.append(text, copied, begin - copied);
      copied = end;
    }
    if (word != "class" && word != "struct" && word != "union") continue;
    const std::size_t name = name_behind_macros(text, end);
    if (name == end) continue;
    plain.append(text, copied, end - copied).append(" ");
    at = copied = name;
  }
  return plain.append(text, copied);
}

}  // namespace efimd::syntax
