#include "tests/bench/completion/healing_places.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <stdexcept>

#include "base/utf8.h"

namespace efimd::bench {
namespace {

constexpr std::size_t kBeforeBytes = 1200;
constexpr std::size_t kAfterBytes = 400;
constexpr int kAttemptsEach = 100;

std::string file_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open()) throw std::runtime_error("cannot read " + path.string());
  return utf8::sanitized(text);
}

std::size_t line_start(const std::string& text, std::size_t byte) {
  const std::size_t newline = byte == 0 ? std::string::npos : text.rfind('\n', byte - 1);
  return newline == std::string::npos ? 0 : newline + 1;
}

std::optional<HealingPlace> place_at(const std::string& text, std::size_t cursor, int lines_typed,
                                     const engine::Tokenizer& tokenizer) {
  const std::size_t line_end = std::min(text.find('\n', cursor), text.size());
  std::string rest = text.substr(cursor, line_end - cursor);
  rest.resize(rest.find_last_not_of(" \t\r") + 1);
  if (rest.empty() || utf8::is_continuation(text[cursor])) return std::nullopt;
  std::size_t typed_begin = line_start(text, cursor);
  for (; lines_typed > 0 && typed_begin > 0; --lines_typed)
    typed_begin = line_start(text, typed_begin - 1);
  const std::size_t begin = line_start(text, typed_begin - std::min(typed_begin, kBeforeBytes));
  // the cut may lie before the line's start.
  const std::size_t cut =
      begin + tokenizer.line_cut(std::string_view(text).substr(begin, typed_begin - begin));
  const std::size_t resume = std::min(line_end + 1, text.size());
  const std::size_t after_end = std::min(text.find('\n', resume + kAfterBytes), text.size());
  return HealingPlace{text.substr(begin, cut - begin), text.substr(cut, cursor - cut),
                      text.substr(resume, std::max(after_end, resume) - resume), std::move(rest)};
}

}  // namespace

std::vector<HealingPlace> random_places(const std::vector<std::filesystem::path>& files,
                                        const engine::Tokenizer& tokenizer, int count,
                                        std::uint32_t seed) {
  std::string text;
  for (const std::filesystem::path& file : files) text += file_text(file) + "\n";
  std::mt19937 random(seed);
  std::vector<HealingPlace> places;
  for (int attempt = 0; attempt < count * kAttemptsEach; ++attempt) {
    if (static_cast<int>(places.size()) == count) return places;
    const auto lines_typed = static_cast<int>(random() % 4);
    if (auto place = place_at(text, random() % text.size(), lines_typed, tokenizer))
      places.push_back(std::move(*place));
  }
  throw std::runtime_error("the files have too little code");
}

}  // namespace efimd::bench
