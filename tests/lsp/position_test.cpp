#include "lsp/position.h"

#include <catch2/catch.hpp>
#include <vector>

#include "base/utf8.h"

using namespace efimd::lsp;

namespace {

constexpr PositionEncoding kAll[] = {PositionEncoding::kUtf8, PositionEncoding::kUtf16,
                                     PositionEncoding::kUtf32};

// bytes: a 0-1, e with acute 1-3, euro 3-6, emoji 6-10, b 10-11;   UTF-16 units: 0 1 2 3 5 6; code
// points: 0 1 2 3 4 5
const std::string kMixed = "a\u00e9\u20ac\U0001F600b";

}  // namespace

TEST_CASE("every boundary of a mixed line converts there and back in all three encodings") {
  const std::vector<std::size_t> bytes = {0, 1, 3, 6, 10, 11};
  const std::vector<std::uint32_t> utf16 = {0, 1, 2, 3, 5, 6};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint32_t>(bytes[i]);
    CHECK(byte_of(kMixed, byte, PositionEncoding::kUtf8) == bytes[i]);
    CHECK(byte_of(kMixed, utf16[i], PositionEncoding::kUtf16) == bytes[i]);
    CHECK(byte_of(kMixed, static_cast<std::uint32_t>(i), PositionEncoding::kUtf32) == bytes[i]);
    CHECK(character_of(kMixed, bytes[i], PositionEncoding::kUtf8) == byte);
    CHECK(character_of(kMixed, bytes[i], PositionEncoding::kUtf16) == utf16[i]);
    CHECK(character_of(kMixed, bytes[i], PositionEncoding::kUtf32) == i);
  }
}

TEST_CASE("a position inside a code point or between surrogates is its start") {
  CHECK(byte_of(kMixed, 2, PositionEncoding::kUtf8) == 1);
  CHECK(byte_of(kMixed, 4, PositionEncoding::kUtf8) == 3);
  CHECK(byte_of(kMixed, 9, PositionEncoding::kUtf8) == 6);
  CHECK(byte_of(kMixed, 4, PositionEncoding::kUtf16) == 6);
  CHECK(character_of(kMixed, 8, PositionEncoding::kUtf16) == 3);
  CHECK(character_of(kMixed, 2, PositionEncoding::kUtf32) == 1);
  CHECK(character_of(kMixed, 5, PositionEncoding::kUtf8) == 3);
}

TEST_CASE("past the line's end is the line's end") {
  for (const PositionEncoding encoding : kAll) {
    CHECK(byte_of(kMixed, 12, encoding) == kMixed.size());
    CHECK(byte_of(kMixed, 0xFFFFFFFF, encoding) == kMixed.size());
    CHECK(byte_of("", 5, encoding) == 0);
    CHECK(character_of(kMixed, 99, encoding) == character_of(kMixed, kMixed.size(), encoding));
    CHECK(character_of("", 3, encoding) == 0);
  }
}

TEST_CASE("combining marks are code points of their own") {
  const std::string text = "e\u0301x";  // e and a combining acute
  CHECK(byte_of(text, 1, PositionEncoding::kUtf16) == 1);
  CHECK(byte_of(text, 2, PositionEncoding::kUtf16) == 3);
  CHECK(byte_of(text, 2, PositionEncoding::kUtf32) == 3);
}

TEST_CASE("long lines agree with counting code point by code point") {
  std::string line;
  for (int i = 0; i < 40; ++i)
    line += std::string(static_cast<std::size_t>(i), 'x') + "\U0001F600\u00e9";
  std::uint32_t utf16 = 0;
  std::uint32_t utf32 = 0;
  for (std::size_t byte = 0; byte < line.size();) {
    CHECK(byte_of(line, utf16, PositionEncoding::kUtf16) == byte);
    CHECK(byte_of(line, utf32, PositionEncoding::kUtf32) == byte);
    CHECK(character_of(line, byte, PositionEncoding::kUtf16) == utf16);
    const efimd::utf8::CodePoint point = efimd::utf8::decode(line, byte);
    utf16 += point.value > 0xFFFF ? 2 : 1;
    utf32 += 1;
    byte += static_cast<std::size_t>(point.length);
  }
}

TEST_CASE("the client's first known encoding is answered, and utf-16 without one") {
  CHECK(negotiate(std::vector<std::string>{"utf-8", "utf-16", "utf-32"}) ==
        PositionEncoding::kUtf8);
  CHECK(negotiate(std::vector<std::string>{"utf-32", "utf-8", "utf-16"}) ==
        PositionEncoding::kUtf32);
  CHECK(negotiate(std::vector<std::string>{"utf-7", "utf-16"}) == PositionEncoding::kUtf16);
  CHECK(negotiate(std::vector<std::string>{"latin-1"}) == PositionEncoding::kUtf16);
  CHECK(negotiate(std::vector<std::string>{}) == PositionEncoding::kUtf16);
}

TEST_CASE("encoding names are LSP's") {
  for (const PositionEncoding encoding : kAll)
    CHECK(encoding_of(encoding_name(encoding)) == encoding);
  CHECK(encoding_name(PositionEncoding::kUtf32) == "utf-32");
}
