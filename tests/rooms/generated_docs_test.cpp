#include "tests/rooms/generated_docs.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

namespace efimd::docs {

namespace {

constexpr GeneratedPart kPart{"made_up.md", "a", [] { return std::string("new\n"); }};

}  // namespace

TEST_CASE("docs/ has the program's own tables of configuration keys, commands and receipts") {
  REQUIRE(generated_parts().size() >= 4);
  for (const GeneratedPart& part : generated_parts()) {
    std::ifstream file(std::string(EFIMD_DOCS "/") + std::string(part.file));
    REQUIRE(file.is_open());
    const std::string page(std::istreambuf_iterator<char>(file), {});
    const auto now = renewed(page, part);
    REQUIRE(now);
    INFO("docs/" << part.file << " is old: cmake --build build/release --target renew_docs");
    CHECK(*now == page);
  }
}

TEST_CASE("each generated part is a table") {
  for (const GeneratedPart& part : generated_parts()) {
    CHECK(part.text().find("| --- |") != std::string::npos);
  }
}

TEST_CASE("renewing replaces what stands between a part's lines, and nothing else") {
  const auto page = renewed(
      "above\n<!-- made by renew_docs: b -->\nother\n<!-- end -->\n"
      "<!-- made by renew_docs: a -->\nold\n<!-- end -->\nbelow\n",
      kPart);
  REQUIRE(page);
  CHECK(*page ==
        "above\n<!-- made by renew_docs: b -->\nother\n<!-- end -->\n"
        "<!-- made by renew_docs: a -->\nnew\n<!-- end -->\nbelow\n");
  CHECK(renewed(*page, kPart).value_or("") == *page);
}

TEST_CASE("a page without a part's lines is refused with the lines to put back") {
  for (const char* page : {"", "<!-- made by renew_docs: a -->\nno end\n",
                           "<!-- end -->\n<!-- made by renew_docs: b -->\n<!-- end -->\n"}) {
    const auto refused = renewed(page, kPart);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("made by renew_docs: a") != std::string::npos);
  }
}

}  // namespace efimd::docs
