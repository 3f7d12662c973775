#include "daemon/recall/session_text.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "tests/recall/offers.h"

using namespace efimd;
using namespace efimd::recall;

TEST_CASE("what was deleted is offered, also when it went key by key") {
  Index index;
  const std::string gone = "keep_this(first_thing);\n";
  text::Document document("int a;\n" + gone + "int b;\n");
  index.set_document(kTyped, document.snapshot());
  SECTION("at once") {
    REQUIRE(document.replace(7, 7 + gone.size(), ""));
    index.set_document(kTyped, document.snapshot());
  }
  SECTION("with backspace") {
    for (std::size_t end = 7 + gone.size(); end > 7; --end) {
      REQUIRE(document.replace(end - 1, end, ""));
      index.set_document(kTyped, document.snapshot());
    }
  }
  SECTION("with delete") {
    for (std::size_t i = 0; i < gone.size(); ++i) {
      REQUIRE(document.replace(7, 8, ""));
      index.set_document(kTyped, document.snapshot());
    }
  }
  const auto found = find(index, "int a;\nkeep_this(^\nint b;\n");
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().text == "first_thing);");
  CHECK(found.front().source == Source::kDeleted);
}

TEST_CASE("text that is deleted between earlier edits is kept as it was") {
  Index index;
  text::Document document("int first;\ncall_of(first_thing, second_thing);\nint last;\n");
  index.set_document({"project", "/project/b.c"}, document.snapshot());
  const auto edit = [&](std::string_view at, std::size_t removed, std::string_view text) {
    const std::size_t begin = document.snapshot()->bytes().find(at);
    REQUIRE(document.replace(begin, begin + removed, text));
  };
  edit("int last", 0, "int behind_it;\n");
  edit("int first", 0, "int in_front_of_it;\n");
  edit("call_of", std::string_view("call_of(first_thing, second_thing);\n").size(), "");
  index.set_document({"project", "/project/b.c"}, document.snapshot());
  CHECK(offers(index, "int q;\ncall_of(fir^\n", "st_thing, second_thing);"));
}

TEST_CASE("an accepted suggestion is remembered after its text is gone") {
  Index index;
  const std::string text = "int a;\ncall_of(first_thing);\n";
  index.accept(kTyped, text, 15, "first_thing);");
  const auto found = find(index, "int a;\ncall_of(^\n");
  REQUIRE_FALSE(found.empty());
  CHECK(found.front().text == "first_thing);");
  CHECK(found.front().source == Source::kAccepted);
}

TEST_CASE("a long deleted text is kept up to the end of a line, and of a code point") {
  const std::string sharp = "\xc3\x9f";
  for (const bool is_one_line : {false, true}) {
    CAPTURE(is_one_line);
    std::string block = "auto name_of_it = \"";
    if (!is_one_line) block = std::string(SessionText::kDeletedBytesMax - 60, '\n') + block;
    while (block.size() <= SessionText::kDeletedBytesMax) block += sharp;
    block += "\";\n";
    REQUIRE(utf8::floor(block, SessionText::kDeletedBytesMax) < SessionText::kDeletedBytesMax);
    Index index;
    text::Document document(block);
    index.set_document({"project", "/project/b.c"}, document.snapshot());
    REQUIRE(document.replace(0, block.size(), ""));
    index.set_document({"project", "/project/b.c"}, document.snapshot());
    const std::string typed =
        is_one_line ? "x = \"" + sharp + sharp + "^\n" : "auto name_of_it = ^\n";
    for (const Candidate& candidate : find(index, typed))
      CHECK(utf8::valid_prefix(candidate.text) == candidate.text.size());
    CHECK(find(index, "auto name_of_it = ^\n").empty() == !is_one_line);
  }
}

TEST_CASE("deleted text is bounded, the oldest goes first") {
  Index index({.session_bytes = 2000});
  text::Document document("");
  for (int i = 0; i < 100; ++i) {
    const std::string line = "deleted_call_" + std::to_string(i) + "(deleted_thing);\n";
    REQUIRE(document.replace(0, 0, line));
    index.set_document(kTyped, document.snapshot());
    REQUIRE(document.replace_all("int between;\n"));
    index.set_document(kTyped, document.snapshot());
    REQUIRE(document.replace(0, document.snapshot()->bytes().size(), ""));
    index.set_document(kTyped, document.snapshot());
    index.accept(kTyped, "", 0, line);
  }
  CHECK(index.usage().text_bytes <= 2000);
  CHECK(offers(index, "deleted_call_99(^\n", "deleted_thing);"));
  CHECK_FALSE(offers(index, "deleted_call_3(^\n", "deleted_thing);"));
}
