#include "daemon/syntax/import_part.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

namespace efimd::syntax {

namespace {

/// One of them stands in every import of the language: in its only line, or in its first or last one.
std::span<const std::string_view> words_of(Grammar grammar) {
  static constexpr auto kIncludes = std::to_array<std::string_view>({"include"});
  static constexpr auto kImport = std::to_array<std::string_view>({"import"});
  static constexpr auto kRust = std::to_array<std::string_view>({"use", "mod"});
  static constexpr auto kScript = std::to_array<std::string_view>({"import", "require", "from"});
  switch (grammar) {
    case Grammar::kC:
    case Grammar::kCpp:
      return kIncludes;
    case Grammar::kRust:
      return kRust;
    case Grammar::kTypescript:
    case Grammar::kTsx:
      return kScript;
    default:
      return kImport;
  }
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/// Where an import goes on behind such a word that ends at `end`. "from" is a name, too, as in
/// Array.from(): in an import a path follows, maybe on the next line. npos: it is none.
std::size_t goes_on_at(std::string_view text, std::string_view word, std::size_t end) {
  if (word != "from") return end;
  const std::size_t path = text.find_first_not_of(" \t\r\n", end);
  const bool is_path = path < text.size() && (text[path] == '"' || text[path] == '\'');
  return is_path ? path : std::string_view::npos;
}

/// Where the import goes on behind the last such word; 0 if there is none.
std::size_t last_end(std::string_view text, std::string_view word) {
  for (std::size_t at = text.rfind(word); at != std::string_view::npos;
       at = text.rfind(word, at - 1)) {
    const std::size_t end = at + word.size();
    const bool is_whole =
        (at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]));
    const std::size_t goes_on = is_whole ? goes_on_at(text, word, end) : std::string_view::npos;
    if (goes_on != std::string_view::npos) return goes_on;
    if (at == 0) break;
  }
  return 0;
}

/// The end of the line where the statement's brackets are closed, or of one with a semicolon outside of
/// them.
std::size_t statement_end(std::string_view text, std::size_t at) {
  for (int depth = 0; at < text.size() && depth >= 0; ++at) {
    const char c = text[at];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c == '\n' && depth <= 0) break;
  }
  return std::min(text.find('\n', at), text.size() - 1) + 1;
}

/// Conditions that the text leaves open.
std::size_t open_conditions(std::string_view text) {
  std::size_t open = 0;
  for (std::size_t at = text.find('#'); at != std::string_view::npos; at = text.find('#', at + 1)) {
    std::size_t word = at + 1;
    while (word < text.size() && (text[word] == ' ' || text[word] == '\t')) ++word;
    if (text.substr(word).starts_with("if")) ++open;
    if (text.substr(word).starts_with("endif") && open > 0) --open;
  }
  return open;
}

/// Braces that the text leaves open; those in strings and comments are few and mostly closed there.
std::size_t open_braces(std::string_view text) {
  std::size_t open = 0;
  for (const char c : text) {
    if (c == '{') ++open;
    if (c == '}' && open > 0) --open;
  }
  return open;
}

}  // namespace

std::string import_part(Grammar grammar, std::string_view text) {
  text = part_read(text);
  std::size_t end = 0;
  for (const std::string_view word : words_of(grammar)) end = std::max(end, last_end(text, word));
  if (end == 0) return {};
  std::string part(text.substr(0, statement_end(text, end)));
  if (grammar == Grammar::kC || grammar == Grammar::kCpp)
    for (std::size_t left = open_conditions(part); left > 0; --left) part += "#endif\n";
  // In which of the text's modules an import stands is lost if they stay open.
  if (grammar == Grammar::kRust) part.append(open_braces(part), '}');
  return part;
}

}  // namespace efimd::syntax
