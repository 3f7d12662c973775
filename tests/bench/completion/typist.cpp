#include "tests/bench/completion/typist.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "daemon/text/line_index.h"

namespace efimd::bench {

namespace {

constexpr std::string_view kBlanks = " \t";

bool is_word_byte(char byte) {
  const bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
  const bool digit = byte >= '0' && byte <= '9';
  return letter || digit || byte == '_' || static_cast<unsigned char>(byte) >= 0x80;
}

/// Whether a word or a line ends at `byte`, or there is none on one of its sides.
bool is_border(std::string_view text, std::size_t byte) {
  return byte == 0 || byte >= text.size() || !is_word_byte(text[byte - 1]) ||
         !is_word_byte(text[byte]);
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char byte) { return !utf8::is_continuation(byte); }));
}

}  // namespace

double Typist::pause_ms(bool line_start) {
  // The mean of a log-normal distribution is exp(m + s * s / 2).
  std::lognormal_distribution<double> key(std::log(kKeyMsMean) - kKeySpread * kKeySpread / 2,
                                          kKeySpread);
  return key(random_) + (line_start ? kLinePauseMs : 0);
}

std::size_t key_bytes(std::string_view rest) {
  const auto one = static_cast<std::size_t>(utf8::decode(rest, 0).length);
  if (rest[0] != '\n' && !rest.starts_with("\r\n")) return one;
  const std::size_t begin = rest.find('\n') + 1;
  const std::size_t end = rest.find_first_not_of(kBlanks, begin);
  return end == std::string_view::npos ? rest.size() : end;
}

std::size_t keys_of(std::string_view text) {
  std::size_t keys = 0;
  for (; !text.empty(); ++keys) text.remove_prefix(key_bytes(text));
  return keys;
}

std::size_t acceptable_bytes(std::string_view suggestion, std::string_view rest) {
  auto same =
      static_cast<std::size_t>(std::ranges::mismatch(suggestion, rest).in1 - suggestion.begin());
  while (same > 0 && !(is_border(suggestion, same) && is_border(rest, same))) --same;
  return characters(rest.substr(0, same)) >= kAcceptCharactersMin ? same : 0;
}

Exercise exercise_of(std::string_view text, int lines, std::uint32_t seed) {
  const text::LineIndex index(text);
  const std::size_t count = index.line_count();
  const auto wanted = std::min(static_cast<std::size_t>(lines), count / 2 + 1);
  std::size_t first = count / 3 + std::mt19937(seed)() % std::max<std::size_t>(count / 3, 1);
  const auto blank = [&](std::size_t line) {
    return index.content(text, line).find_first_not_of(kBlanks) == std::string_view::npos;
  };
  while (first + 1 < count && blank(first)) ++first;
  std::size_t last = std::min(first + wanted, count) - 1;
  while (last > first && blank(last)) --last;
  const std::size_t indent = index.content(text, first).find_first_not_of(kBlanks);
  Exercise exercise;
  exercise.cursor = index.start(first) + (indent == std::string_view::npos ? 0 : indent);
  const std::size_t end = index.content_end(text, last);
  exercise.typed = text.substr(exercise.cursor, end - exercise.cursor);
  exercise.open = std::string(text.substr(0, exercise.cursor)) + std::string(text.substr(end));
  return exercise;
}

Exercise new_file_of(std::string_view text, int lines) {
  const text::LineIndex index(text);
  const auto last = std::min(static_cast<std::size_t>(lines), index.line_count()) - 1;
  const std::size_t end = index.content_end(text, last);
  return {.open = {}, .typed = std::string(text.substr(0, end)), .cursor = 0};
}

}  // namespace efimd::bench
