#include "lsp/position.h"

#include <algorithm>
#include <array>
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
  std::size_t left = character;
  std::size_t byte = 0;
  while (byte < line.size()) {
    const std::size_t ascii = utf8::ascii_prefix(line.substr(byte, left));  // one unit each
    byte += ascii;
    left -= ascii;
    const utf8::CodePoint point = utf8::decode(line, byte);
    const std::size_t wide = units(point, encoding);
    if (left < wide) break;
    left -= wide;
    byte += static_cast<std::size_t>(point.length);
  }
  return byte;
}

std::uint32_t character_of(std::string_view line, std::size_t byte, PositionEncoding encoding) {
  byte = std::min(byte, line.size());
  std::size_t character = 0;
  for (std::size_t at = 0; at < byte;) {
    const std::size_t ascii = utf8::ascii_prefix(line.substr(at, byte - at));
    at += ascii;
    character += ascii;
    if (at == byte) break;
    const utf8::CodePoint point = utf8::decode(line, at);
    at += static_cast<std::size_t>(point.length);
    if (at <= byte) character += units(point, encoding);
  }
  return static_cast<std::uint32_t>(character);
}

}  // namespace efimd::lsp
