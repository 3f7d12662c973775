#include "daemon/text/line_index.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

using efimd::text::LineIndex;

namespace {

/// The contents of all lines.
std::vector<std::string> lines(const std::string& text) {
  const LineIndex index(text);
  std::vector<std::string> out;
  for (std::size_t line = 0; line < index.line_count(); ++line)
    out.emplace_back(index.content(text, line));
  return out;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("lines end at \\n, \\r\\n and a lone \\r") {
  CHECK(lines("") == Lines{""});
  CHECK(lines("a") == Lines{"a"});
  CHECK(lines("a\n") == Lines{"a", ""});
  CHECK(lines("a\r\nb\rc\nd") == Lines{"a", "b", "c", "d"});
  CHECK(lines("\r\r\n\n") == Lines{"", "", "", ""});
  CHECK(lines("\n\r") == Lines{"", "", ""});
}

TEST_CASE("U+2028, form feeds and NUL end no line") {
  CHECK(lines("a\u2028b\fc\vd") == Lines{"a\u2028b\fc\vd"});
  CHECK(LineIndex(std::string_view("a\0b", 3)).line_count() == 1);
}

TEST_CASE("a byte belongs to the line whose start is at or before it") {
  const std::string text = "ab\r\nc\n";
  const LineIndex index(text);
  const std::vector<std::size_t> expected = {0, 0, 0, 0, 1, 1, 2, 2};  // one past the end too
  for (std::size_t byte = 0; byte < expected.size(); ++byte)
    CHECK(index.line_of(byte) == expected[byte]);
  CHECK(index.start(1) == 4);
  CHECK(index.content_end(text, 0) == 2);
}

TEST_CASE("lines past the end are empty and start at the text's end") {
  const std::string text = "ab\n";
  const LineIndex index(text);
  CHECK(index.start(2) == 3);
  CHECK(index.start(99) == 3);
  CHECK(index.content_end(text, 99) == 3);
  CHECK(index.content(text, 99).empty());
}

TEST_CASE(
    "an index that follows edits equals one made from the text, also where \\r and \\n join or "
    "part") {
  std::mt19937_64 random(7);
  const std::string alphabet = "\r\n\r\nab";
  const auto random_text = [&](std::size_t length_max) {
    std::string out;
    for (std::size_t left = random() % (length_max + 1); left > 0; --left)
      out += alphabet[random() % alphabet.size()];
    return out;
  };
  for (int round = 0; round < 200; ++round) {
    std::string text = random_text(12);
    LineIndex index(text);
    for (int edit = 0; edit < 50; ++edit) {
      const std::size_t begin = random() % (text.size() + 1);
      const std::size_t removed = random() % (std::min<std::size_t>(text.size() - begin, 4) + 1);
      const std::string inserted = random_text(4);
      text.replace(begin, removed, inserted);
      index.replace(text, begin, removed, inserted.size());
      if (!(index == LineIndex(text))) {
        CAPTURE(text, begin, removed, inserted);
        FAIL("the index does not follow this edit");
      }
    }
  }
  SUCCEED("10,000 edits followed");
}
