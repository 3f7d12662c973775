#include "daemon/context/head.h"

#include <catch2/catch.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace efimd;
using namespace efimd::context;

namespace {

using Declarations = std::vector<syntax::Declaration>;

const Declarations kShapes = syntax::outline_of(
    syntax::Grammar::kCpp,
    "struct Shape { int sides_of_it(); };\nint area(const Shape& shape);\nvoid draw();\n");
const Declarations kOthers = syntax::outline_of(syntax::Grammar::kCpp, "int never_used();\n");

Source source(std::string path, const Declarations& declarations, bool beside = false) {
  return {{std::move(path), "imported", {}, beside}, &declarations};
}

const std::vector<Source> kSources = {source("others.h", kOthers), source("shapes.h", kShapes)};

Head head(std::string_view text, std::size_t bytes = 4096) {
  return make_head(text, kSources, bytes);
}

}  // namespace

TEST_CASE("a head shows the files that the text mentions something of, whole") {
  const Head made = head("int n = area(s);\n");
  REQUIRE(made.slots.size() == 1);
  CHECK(made.slots[0].path == "shapes.h");
  CHECK(made.slots[0].text ==
        "struct Shape { int sides_of_it(); };\nint area(const Shape& shape);\nvoid draw();\n");
}

TEST_CASE("a text that mentions nothing of its imports has no head") {
  CHECK(head("int areas = 1; // shape, drawn\n").slots.empty());
  CHECK(head("").slots.empty());
}

TEST_CASE("a long name of a member counts as a mention") {
  CHECK(head("s.sides_of_it()").slots.size() == 1);
}

TEST_CASE("what the text mentions comes before the rest if room is short") {
  const Head made = head("area(s);", 40);
  REQUIRE(made.slots.size() == 1);
  CHECK(made.slots[0].text == "int area(const Shape& shape);\n");
}

TEST_CASE("what the text mentions of any file comes before what else others declare") {
  std::string much;
  for (int i = 0; i < 60; ++i) much += "int filler_" + std::to_string(i) + "(int a);\n";
  const Declarations first = syntax::outline_of(syntax::Grammar::kCpp, much + "int wanted();\n");
  const std::vector<Source> sources = {source("first.h", first), source("shapes.h", kShapes)};
  const Head made = make_head("wanted(); area(s);", sources, 100);
  REQUIRE(made.slots.size() == 2);
  CHECK(made.slots[0].text.find("int wanted();\n") != std::string::npos);
  CHECK(made.slots[1].text.find("int area(const Shape& shape);\n") != std::string::npos);
  CHECK(made.slots[0].text.size() + made.slots[1].text.size() <= 100);
}

TEST_CASE("a file alone may fill the head") {
  const std::vector<Source> sources = {source("shapes.h", kShapes)};
  const Head made = make_head("area(s);", sources, 82);
  REQUIRE(made.slots.size() == 1);
  CHECK(made.slots[0].text.size() > 41);
}

TEST_CASE(
    "of files beside the text's own only what it mentions is shown, and of names imported these") {
  std::vector<Source> sources = {source("beside.java", kShapes, true)};
  CHECK(make_head("draw()", sources, 4096).slots.at(0).text == "void draw();\n");
  sources[0].file.is_beside = false;
  sources[0].file.names = {"area", "draw"};
  CHECK(make_head("draw()", sources, 4096).slots.at(0).text ==
        "int area(const Shape& shape);\nvoid draw();\n");
}

TEST_CASE("of another package in Go only what it exports is shown") {
  const Declarations store = syntax::outline_of(
      syntax::Grammar::kGo,
      "package store\ntype conn struct { Addr string }\ntype Store struct { c conn }\n"
      "const (\n\tlow = 1\n\tHigh = 2\n)\nvar pool int\nfunc (s *Store) reset() {}\n"
      "func Open(path string) *Store { return nil }\n");
  std::vector<Source> sources = {source("store/store.go", store)};
  CHECK(make_head("s := store.Open(conn)", sources, 4096).slots.at(0).text ==
        "type Store struct { c conn }\nconst (\n\tlow = 1\n\tHigh = 2\n)\n"
        "func Open(path string) *Store\n");
  sources[0].file.is_beside = true;
  CHECK(make_head("reset()", sources, 4096).slots.at(0).text == "func (s *Store) reset()\n");
}

TEST_CASE("what a file does not declare itself is sought in those that it passes on") {
  const ProjectPaths project(
      "/p", {"/p/pkg/shape.py", "/p/pkg/sub.py", "/p/ui/a.ts", "/p/ui/b.ts", "/p/src/lib.rs",
             "/p/src/net.rs", "/p/src/io.rs", "/p/all/a.h", "/p/all/b.h"});
  const auto passed = [&](const std::string& path, std::string_view text,
                          std::vector<std::string> names) {
    std::string all;
    for (const UsedFile& file :
         passed_on({path, "imported", std::move(names)}, parts_of(path, text), project)) {
      all += file.path.substr(3);
      for (const std::string& name : file.names) all += " " + name;
      all += "\n";
    }
    return all;
  };
  const std::string python = "from .shape import Shape, area\nfrom .sub import *\nLIMIT = 1\n";
  CHECK(passed("/p/pkg/__init__.py", python, {"area"}) == "pkg/shape.py area\n");
  CHECK(passed("/p/pkg/__init__.py", python, {"area", "deep", "LIMIT"}) ==
        "pkg/shape.py area\npkg/sub.py deep\n");
  CHECK(passed("/p/pkg/__init__.py", python, {"LIMIT"}).empty());
  CHECK(passed("/p/pkg/__init__.py", python, {}).empty());
  CHECK(passed("/p/pkg/__init__.py", "from .shape import Shape\n", {}) == "pkg/shape.py Shape\n");
  CHECK(passed("/p/ui/index.ts", "export * from './a';\nexport { B } from './b';\n", {"B"}) ==
        "ui/b.ts B\n");
  const std::string renamed =
      "export { default as C, A as D } from './a';\nexport { default as E } from './b';\n";
  CHECK(passed("/p/ui/index.ts", renamed, {"C"}) == "ui/a.ts C\n");
  CHECK(passed("/p/ui/index.ts", renamed, {"D", "E"}) == "ui/a.ts A\nui/b.ts E\n");
  CHECK(passed("/p/pkg/__init__.py", "from .shape import Shape as Form\n", {"Form"}) ==
        "pkg/shape.py Shape\n");
  CHECK(passed("/p/src/lib.rs", "mod io;\nmod net;\npub use net::Peer;\npub fn f() {}\n",
               {"Peer"}) == "src/net.rs Peer\n");
  CHECK(passed("/p/all/all.h",
               "#ifndef ALL_H\n#define ALL_H\n#include \"a.h\"\n#include \"b.h\"\n#endif\n",
               {}) == "all/a.h\nall/b.h\n");
}

TEST_CASE("editing a text changes its head only at a first mention") {
  const std::string text = "int n = area(s);\n";
  CHECK(head(text) == head("int many = 0; area(many); draw();\n" + text));
  CHECK_FALSE(head(text) == head(text + "never_used();"));
}

TEST_CASE("a head is changed for what is wrong in it or mentioned, and not for what might help") {
  const Head now = head("area(s);");
  const auto is_worth = [&](const Head& old, std::string_view text) {
    return is_worth_changing(old, now, kSources, text);
  };
  Head old = now;
  CHECK_FALSE(is_worth(old, "area(s);"));
  old.slots[0].text += "int gone();\n";
  CHECK(is_worth(old, "area(s);"));
  old = now;
  old.slots[0].text = "int area(const Shape& shape);\n";
  old.slots[0].names = {"area"};
  CHECK_FALSE(is_worth(old, "area(s);"));
  CHECK(is_worth(old, "area(s); draw();"));
  CHECK(is_worth({}, "area(s);"));
}

TEST_CASE("a head stays while what it says is so, also if the text mentions it no longer") {
  const Head both = head("area(s); never_used();"), one = head("area(s);");
  REQUIRE(both.slots.size() == 2);
  CHECK_FALSE(is_worth_changing(both, one, kSources, "area(s);"));
  CHECK_FALSE(is_worth_changing(both, {}, kSources, ""));
  CHECK(is_worth_changing(one, both, kSources, "area(s); never_used();"));
  const std::span<const Source> without_others = std::span(kSources).last(1);
  CHECK(is_worth_changing(both, one, without_others, "area(s);"));
}
