#include "daemon/prompt/places.h"

#include <algorithm>

#include "base/utf8.h"

namespace efimd::prompt {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool is_closer(char c) { return std::string_view(")]}>;,:\"'`").find(c) != std::string_view::npos; }

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || c == '_' || (c >= '0' && c <= '9') ||
         ((byte | 0x20U) >= 'a' && (byte | 0x20U) <= 'z');
}

/// A place before the cursor's word, for lines too long to be cut at their start.
std::size_t word_cut(std::string_view text, std::size_t cursor) {
  const std::size_t nearest = cursor - std::min(cursor, kCutDistanceMax);
  std::size_t cut = cursor;
  while (cut > nearest && is_word(text[cut - 1])) --cut;
  return cut > nearest ? cut : utf8::floor(text, cursor);
}

}  // namespace

bool only_closers_and_blanks(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return is_blank(c) || is_closer(c); });
}

std::size_t choose_cut(std::string_view text, std::size_t cursor,
                       const engine::Tokenizer& tokenizer) {
  const std::size_t nearest = utf8::floor(text, cursor - std::min(cursor, kCutDistanceMax));
  const std::size_t cut = tokenizer.line_cut(text.substr(nearest, cursor - nearest));
  if (cut == 0 && nearest > 0) return word_cut(text, cursor);
  return nearest + cut;
}

std::size_t choose_resume(const text::Snapshot& snapshot, std::size_t cursor) {
  const std::string_view text = snapshot.bytes();
  const std::size_t line = snapshot.lines().line_of(cursor);
  const std::size_t end = snapshot.lines().content_end(text, line);
  if (end > cursor && !only_closers_and_blanks(text.substr(cursor, end - cursor))) return cursor;
  return std::max(cursor, snapshot.lines().start(line + 1));
}

std::size_t line_start_from(const text::Snapshot& snapshot, std::size_t byte, std::size_t limit) {
  const text::LineIndex& lines = snapshot.lines();
  const std::size_t line = lines.line_of(byte);
  if (lines.start(line) == byte) return byte;
  const std::size_t next = lines.start(line + 1);
  return next <= limit ? next : utf8::floor(snapshot.bytes(), byte);
}

}  // namespace efimd::prompt
