#include "base/utf8.h"

#include <catch2/catch.hpp>

using namespace efimd;

TEST_CASE("code points of every length decode and append back to the same bytes") {
  const std::string text = "a\u00e9\u20ac\U0001F600";
  std::string again;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::CodePoint point = utf8::decode(text, at);
    REQUIRE(point.valid);
    utf8::append(again, point.value);
    at += static_cast<std::size_t>(point.length);
  }
  CHECK(again == text);
}

TEST_CASE("overlong forms, surrogates and cut code points are invalid bytes") {
  for (const char* bad :
       {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80", "\xFF"}) {
    CHECK_FALSE(utf8::decode(bad, 0).valid);
    CHECK(utf8::decode(bad, 0).length == 1);
    CHECK(utf8::valid_prefix(bad) == 0);
  }
}

TEST_CASE("sanitized text is valid and keeps what was valid") {
  CHECK(utf8::sanitized("ab\xFF"
                        "c\xE2\x82") == "ab\uFFFDc\uFFFD\uFFFD");
  CHECK(utf8::sanitized("plain \u20ac") == "plain \u20ac");
}

TEST_CASE("an ASCII prefix ends at the first byte of another kind, wherever it lies") {
  for (std::size_t at = 0; at < 20; ++at) {
    std::string text(20, 'a');
    CHECK(utf8::ascii_prefix(text) == 20);
    text[at] = '\xC3';
    CHECK(utf8::ascii_prefix(text) == at);
  }
  CHECK(utf8::ascii_prefix("") == 0);
}
