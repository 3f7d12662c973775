#include "lsp/position.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/utf8.h"

namespace efimd::lsp {

namespace {

constexpr std::array<std::pair<PositionEncoding, std::string_view>, 3> kNames = {{
    {PositionEncoding::kUtf8, "utf-8"},
    {PositionEncoding::kUtf16, "utf-16"},
    {PositionEncoding::kUtf32, "utf-32"},
}};

/// Units of the encoding that one code point takes.
std::size_t units(const utf8::CodePoint& point, PositionEncoding encoding) {
  switch (encoding) {
    case PositionEncoding::kUtf8:
      return static_cast<std::size_t>(point.length);
    case PositionEncoding::kUtf16:
      return point.value > 0xFFFF ? 2 : 1;
    case PositionEncoding::kUtf32:
      break;
  }
  return 1;
}

/// Units of a part of valid UTF-8: a code point counts where it begins. In blocks of bytes, which
/// compilers make vector code of, because an editor may change the end of a line of megabytes.
constexpr std::size_t kBlockBytes = 240;  // one count of it fits in a byte

std::size_t units_in(std::string_view text, PositionEncoding encoding) {
  if (encoding == PositionEncoding::kUtf8) return text.size();
  std::size_t points = 0, pairs = 0;
  while (!text.empty()) {
    const std::string_view block = text.substr(0, kBlockBytes);
    std::uint8_t begun = 0, wide = 0;
    for (const char c : block) {
      begun = static_cast<std::uint8_t>(begun + (utf8::is_continuation(c) ? 0 : 1));
      wide = static_cast<std::uint8_t>(wide + (static_cast<unsigned char>(c) >= 0xF0 ? 1 : 0));
    }
    points += begun;
    pairs += wide;
    text.remove_prefix(block.size());
  }
  return encoding == PositionEncoding::kUtf16 ? points + pairs : points;
}

}  // namespace

std::string_view encoding_name(PositionEncoding encoding) {
  return kNames[static_cast<std::size_t>(encoding)].second;
}

std::optional<PositionEncoding> encoding_of(std::string_view name) {
  for (const auto& [encoding, known] : kNames) {
    if (name == known) return encoding;
  }
  return std::nullopt;
}

PositionEncoding negotiate(std::span<const std::string> offered) {
  for (const std::string& name : offered) {
    if (const auto encoding = encoding_of(name)) return *encoding;
  }
  return PositionEncoding::kUtf16;
}

std::size_t byte_of(std::string_view line, std::uint32_t character, PositionEncoding encoding) {
  if (encoding == PositionEncoding::kUtf8) return utf8::floor(line, character);
  std::size_t left = character;
  std::size_t byte = 0;
  while (line.size() - byte > kBlockBytes) {
    const std::size_t units = units_in(line.substr(byte, kBlockBytes), encoding);
    if (units > left) break;
    left -= units;
    byte += kBlockBytes;
  }
  // The block before may end inside a code point, which it has counted.
  while (byte > 0 && byte < line.size() && utf8::is_continuation(line[byte])) ++byte;
  while (byte < line.size()) {
    const utf8::CodePoint point = utf8::decode(line, byte);
    const std::size_t wide = units(point, encoding);
    if (left < wide) break;
    left -= wide;
    byte += static_cast<std::size_t>(point.length);
  }
  return byte;
}

std::uint32_t character_of(std::string_view line, std::size_t byte, PositionEncoding encoding) {
  return static_cast<std::uint32_t>(units_in(line.substr(0, utf8::floor(line, byte)), encoding));
}

}  // namespace efimd::lsp
