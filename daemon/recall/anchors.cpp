#include "daemon/recall/anchors.h"

namespace efimd::recall {

namespace {

/// Letters of a word after which the next one is still an anchor.
constexpr std::size_t kWordAnchors = 2;

/// Letters of the word just before `at`, counted no further than one past kWordAnchors.
std::size_t letters_before(std::string_view text, std::size_t at) {
  std::size_t letters = 0;
  while (letters <= kWordAnchors && at > letters && is_word(text[at - letters - 1])) ++letters;
  return letters;
}

std::size_t word_begin(std::string_view text, std::size_t at) {
  while (at > 0 && is_word(text[at - 1])) --at;
  return at;
}

}  // namespace

std::size_t line_begin(std::string_view text, std::size_t at) {
  while (at > 0 && !is_line_end(text[at - 1])) --at;
  return at;
}

std::size_t line_end(std::string_view text, std::size_t at) {
  while (at < text.size() && !is_line_end(text[at])) ++at;
  return at;
}

bool is_anchor(std::string_view text, std::size_t at) {
  const bool at_end = at == text.size() || is_line_end(text[at]);
  if (at_end) return at > 0 && !is_line_end(text[at - 1]) && !is_blank(text[at - 1]);
  const bool in_blanks = at == 0 || is_blank(text[at - 1]) || is_line_end(text[at - 1]);
  if (is_blank(text[at]) && in_blanks) return false;
  return letters_before(text, at) <= kWordAnchors;
}

Probe probe_at(std::string_view text, std::size_t cursor) {
  if (letters_before(text, cursor) <= kWordAnchors) return {cursor, false};
  return {word_begin(text, cursor) + kWordAnchors, false};
}

Probe probe_above(std::string_view text, std::size_t cursor) {
  std::size_t at = line_begin(text, cursor);
  while (at > 0 && (is_line_end(text[at - 1]) || is_blank(text[at - 1]))) --at;
  return {at, at > 0};
}

}  // namespace efimd::recall
