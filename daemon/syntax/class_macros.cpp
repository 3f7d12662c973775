#include "daemon/syntax/class_macros.h"

#include <algorithm>
#include <cstddef>

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

}  // namespace

std::string without_class_macros(std::string_view text) {
  std::string plain;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = name_end(text, at);
    const std::string_view word = text.substr(at, end - at);
    at = std::max(end, at + 1);
    if (word != "class" && word != "struct" && word != "union") continue;
    const std::size_t name = name_behind_macros(text, end);
    if (name == end) continue;
    plain.append(text, copied, end - copied).append(" ");
    at = copied = name;
  }
  return plain.append(text, copied);
}

}  // namespace efimd::syntax
