#include "engine/tokenizer/seams.h"

#include "base/utf8.h"

namespace efimd::engine {
namespace {

bool is_visible(char c) { return c > ' ' && c <= '~'; }
bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
/// ASCII of Unicode's category S.
bool is_symbol(char c) { return std::string_view("$+<=>^`|~").find(c) != std::string_view::npos; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_source(char c) { return is_visible(c) || is_blank(c) || c == '\n' || c == '\r'; }

/// What \s means in the rules: Unicode's White_Space.
bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool ends_word(char left, char right) {
  if (is_blank(right)) return is_visible(left) && !is_symbol(left);
  return is_alphanumeric(left) && is_visible(right) && !is_alphanumeric(right);
}

bool both_source(char left, char right) { return is_source(left) && is_source(right); }

}  // namespace

std::size_t line_cut(std::string_view text, NewlineGlue glue) {
  const std::size_t terminator = text.find_last_of("\r\n");
  if (terminator == std::string_view::npos) return 0;
  if (glue == NewlineGlue::kNone) return terminator + 1;
  std::size_t cut = terminator;
  while (cut > 0) {
    const std::size_t begin = utf8::floor(text, cut - 1);
    const utf8::CodePoint before = utf8::decode(text, begin);
    const bool whole = begin + static_cast<std::size_t>(before.length) == cut;
    if (!whole || !is_white_space(before.value)) break;
    cut = begin;
  }
  return cut;
}

SeamTable::SeamTable(Holds holds) {
  for (std::size_t left = 0; left < kAscii; ++left)
    for (std::size_t right = 0; right < kAscii; ++right)
      pairs_[left * kAscii + right] = holds(static_cast<char>(left), static_cast<char>(right));
}

SeamTable SeamTable::word_ends() { return SeamTable(ends_word); }
SeamTable SeamTable::all() { return SeamTable(both_source); }

void SeamTable::join(std::string_view text) {
  for (std::size_t at = 1; at < text.size(); ++at)
    if (is_ascii(text[at - 1]) && is_ascii(text[at])) pairs_.reset(index(text[at - 1], text[at]));
}

void SeamTable::join_all(char character) {
  for (std::size_t other = 0; other < kAscii; ++other) {
    pairs_.reset(index(character, static_cast<char>(other)));
    pairs_.reset(index(static_cast<char>(other), character));
  }
}

}  // namespace efimd::engine
