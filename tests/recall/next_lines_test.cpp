#include "daemon/recall/next_lines.h"

#include <catch2/catch.hpp>
#include <string>

#include "daemon/recall/index.h"

using namespace efimd;
using namespace efimd::recall;

namespace {

constexpr Where kHere{"project", "/project/typed.c"};
const std::string kBody =
    "    open_door(\"west\");\n    walk_through();\n    close_door(\"west\");\n";
const std::string kTwice = "void a() {\n" + kBody + "}\n\nvoid b() {\n" + kBody + "}\n\n";

/// The lines under the candidate that says `line`, joined.
std::string under(const std::string& line, std::string text, const Index& index = Index()) {
  const std::size_t cursor = text.find('^');
  text.erase(cursor, 1);
  for (const Candidate& candidate : index.find({kHere, text, cursor})) {
    if (candidate.text != line) continue;
    std::string joined;
    for (const NextLine& next : candidate.next) joined += next.text + "\n";
    return joined;
  }
  return "no such candidate";
}

}  // namespace

TEST_CASE("the lines under a line that was seen before come with it") {
  CHECK(under("door(\"west\");", kTwice + "void c() {\n    open_^")
            .starts_with("    walk_through();\n    close_door(\"west\");\n}"));
}

TEST_CASE("further lines have the indentation that the cursor's line asks for") {
  CHECK(under("door(\"west\");", kTwice + "struct D {\n  void c() {\n\t  open_^")
            .starts_with("\t  walk_through();\n\t  close_door(\"west\");\n"));
}

TEST_CASE("further lines have the levels that they had, in the cursor's text's own width") {
  Index index;
  std::string other;
  for (const char* name : {"f", "g", "h"})
    other +=
        "int " + std::string(name) + "() {\n  if (is_open()) {\n    walk_through();\n  }\n}\n\n";
  index.add_file({"project", "/project/other.c"}, other);
  CHECK(under("pen()) {", "int k() {\n    int a;\n    if (is_o^", index)
            .starts_with("        walk_through();\n    }\n}\n"));
}

TEST_CASE("further lines end before one that stands under the cursor already") {
  CHECK(
      under("door(\"west\");", kTwice + "void c() {\n    open_^\n    close_door(\"west\");\n}\n") ==
      "    walk_through();\n");
}

TEST_CASE("no lines come where text follows the cursor on its line") {
  CHECK(under("door(", kTwice + "void c() {\n    open_^\"west\");\n").empty());
}

TEST_CASE("further lines end before the cursor's own line") {
  std::string lines;
  for (int i = 0; i < 3; ++i) lines += "step(one);\nstep(two);\n";
  const std::string found = under("p(one);", lines + "ste^");
  CHECK(found.starts_with("step(two);\nstep(one);"));
  CHECK(found.find("ste\n") == std::string::npos);
}

TEST_CASE(
    "an open document that says what its file says is found once, and not by its own cursor") {
  Index index;
  const Where other{"project", "/project/other.c"};
  const std::string text = "call_of(the_only_thing);\n";
  index.add_file(other, text);
  index.set_document(other, text::Document(text).snapshot());
  const std::string typed = "call_of(";
  const auto found = index.find({kHere, typed, typed.size()});
  REQUIRE(found.size() == 1);
  CHECK(found[0].evidence.votes == 1);
  CHECK(index.find({other, text, 8}).empty());
  index.set_document(other, text::Document("changed();\n").snapshot());
  CHECK(index.find({kHere, typed, typed.size()}).empty());
  index.set_document(other, text::Document(text).snapshot());
  CHECK(index.find({kHere, typed, typed.size()}).size() == 1);
}
