#include "daemon/recall/analogy/analogies.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "daemon/recall/analogy/alignment.h"
#include "daemon/recall/analogy/renaming.h"
#include "tests/recall/offers.h"

using namespace efimd;
using namespace efimd::recall;

namespace {

/// What lines that are built as the one at "^" say comes there, the weightiest first.
std::vector<std::string> analogies_at(const std::string& text) {
  const Marked at = marked(text);
  Analogies analogies;
  std::vector<std::string> found;
  for (const Match& match : analogies.find(Asked(at.text, at.cursor), kTyped.path))
    found.emplace_back(match.continuation);
  return found;
}

std::string first_at(const std::string& text) {
  const std::vector<std::string> found = analogies_at(text);
  return found.empty() ? "" : found.front();
}

Renaming renaming_of(std::string_view theirs, std::string_view ours) {
  Renaming renaming;
  REQUIRE(renaming.add(theirs, ours));
  return renaming;
}

const std::string kFields =
    "    def __init__(self, width, height):\n"
    "        self.width = width\n";

}  // namespace

TEST_CASE("a line goes on as one that is built alike, with the user's names") {
  CHECK(first_at(kFields + "        self.height =^") == " height");
  CHECK(first_at(kFields + "        self.height^") == " = height");
}

TEST_CASE("blanks that are typed already are not typed again") {
  CHECK(first_at(kFields + "        self.height = ^") == "height");
}

TEST_CASE("the index offers what lines built alike say, as any other text") {
  const std::vector<Candidate> found = find(Index(), kFields + "        self.height = ^\n");
  REQUIRE(!found.empty());
  CHECK(found.front().text == "height");
  CHECK(found.front().shown == found.front().text.size());
  CHECK(found.front().path == kTyped.path);
  CHECK(found.front().next.empty());
}

TEST_CASE("names within names are replaced in their own spelling") {
  CHECK(first_at("int getWidth() const { return width_; }\n"
                 "int getHeight() const { r^") == "eturn height_; }");
  CHECK(first_at("case Kind::apple_pie: return APPLE_PIE;\n"
                 "case Kind::tart: re^") == "turn TART;");
}

TEST_CASE("a word that may still grow stands for no other, and a known one may") {
  const std::string above = "width = read(width_file)\n";
  CHECK(analogies_at(above + "heig^").empty());
  CHECK(analogies_at(above + "height = read(hei^").size() == 1);
  CHECK(first_at("height = 0\nwidth_now = max(0, width)\nheight_now = max(0, ^") == "height)");
}

TEST_CASE("a word that is begun is finished as the renamed one") {
  CHECK(first_at("load(apple, apple_file)\nload(pear, pe^") == "ar_file)");
  // Nothing is renamed in what is left.
  CHECK(analogies_at("load(apple, disk)\nload(pear, di^").empty());
}

TEST_CASE("a word stands for one word everywhere") {
  CHECK(analogies_at("copy(a1, a1, a1.size)\ncopy(b1, c1, ^").empty());
  CHECK(first_at("copy(a1, a1, a1.size)\ncopy(b1, b1, ^") == "b1.size)");
}

TEST_CASE("at a line's start, two lines above that are built alike say what comes") {
  const std::string block =
      "test(\"apple\", () => {\n"
      "  const made = bake(\"apple\");\n"
      "  expect(made.apple).toBe(true);\n"
      "});\n";
  CHECK(first_at(block + "test(\"pear\", () => {\n"
                         "  const made = bake(\"pear\");\n"
                         "  ^\n") == "expect(made.pear).toBe(true);");
  CHECK(analogies_at("open(\"apple\");\n" + block + "open(\"pear\");\n^\n").empty());
}

TEST_CASE("of lines built alike, those that follow more such lines come first") {
  const std::string text =
      "begin(apple)\nstep(apple, 1)\nend(apple.soft)\n"
      "step(plum, 1)\nend(plum.hard)\n"
      "begin(pear)\nstep(pear, 1)\nend(^";
  const std::vector<std::string> found = analogies_at(text);
  REQUIRE(!found.empty());
  CHECK(found.front() == "pear.soft)");
}

TEST_CASE("signs that differ, and numbers in place of names, are not alike") {
  CHECK(analogies_at("put[width] = width;\nput(height) = ^").empty());
  CHECK(analogies_at("put(1, one(1));\nput(height, one(^").empty());
  CHECK(first_at("put(1, one(1));\nput(2, one(^") == "2));");
}

TEST_CASE("lines far away and long ones are not read") {
  const std::string line = "self.width = width\n";
  const std::string filler(9 * 1024, '\n');
  CHECK(analogies_at(line + filler + "self.height = ^").empty());
  CHECK(analogies_at("self.height = ^\n" + filler + line).empty());
  const std::string wide = std::string(300, 'a') + "(width)\n";
  CHECK(analogies_at("put(width, " + wide + "put(height, ^").empty());
}

TEST_CASE("nothing is said behind a finished line") {
  CHECK(analogies_at("draw(width); width += 1;\ndraw(height);^").empty());
}

TEST_CASE("lines built alike do not say what stands under them") {
  const std::string body = "  get(pear)\n  look_at(it)\n";
  const std::string twice = "void a() {\n" + body + "}\n\nvoid b() {\n" + body + "}\n\n";
  const std::string alike = "void apple() {\n  get(apple)\n}\n\n";
  const std::vector<Candidate> found = find(Index(), twice + alike + "void pear() {\n  get(^\n");
  const auto pear = std::ranges::find(found, "pear)", &Candidate::text);
  REQUIRE(pear != found.end());
  REQUIRE(!pear->next.empty());
  CHECK(pear->next.front().text == "  look_at(it)");
}

TEST_CASE("a draft goes on over lines where text that stands somewhere says the same") {
  const std::string stands = "b = of(c, height)\nnext_of_it()\n\n";
  const Marked at = marked(stands + "self.width = of(c, width)\nself.height = of(c, ^\n");
  Analogies analogies;
  const auto alike = analogies.find(Asked(at.text, at.cursor), kTyped.path);
  REQUIRE(alike.size() == 1);
  CHECK(alike.front().continuation == "height)");
  CHECK(Index().draft({kTyped, at.text, at.cursor}, 100).text.starts_with("height)\nnext_of_it()"));
}

TEST_CASE("names are renamed part by part, in the case of what they replace") {
  const Renaming renaming = renaming_of("width", "max_height");
  CHECK(renaming.word("width") == "max_height");
  CHECK(renaming.word("WIDTH_") == "MAX_HEIGHT_");
  CHECK(renaming.word("setWidth") == "setMaxHeight");
  CHECK(renaming.word("kWidthMin") == "kMaxHeightMin");
  CHECK(renaming.word("_old_width") == "_old_max_height");
  CHECK(renaming.word("widths") == std::nullopt);
  CHECK(renaming_of("width", "maxHeight").word("width") == "maxHeight");
  CHECK(renaming_of("parseHTTPHead", "parseFTPHead").word("HTTPClient") == "FTPClient");
  CHECK(renaming_of("v1", "v2").text("run(v1, 1, v10)") == "run(v2, 2, v10)");
  CHECK(renaming_of("größe", "breite").text("x.größe + 1") == "x.breite + 1");
}

TEST_CASE("a renaming says if a part was to become two others") {
  Renaming renaming = renaming_of("width", "height");
  CHECK(renaming.add("get_width", "get_height"));
  CHECK_FALSE(renaming.add("min_width", "min_depth"));
  CHECK(renaming.add("Width", "WIDTH"));
  CHECK_FALSE(renaming.add("_", "height"));
}

TEST_CASE("two lines are alike if their signs are the same") {
  Alignment alignment;
  REQUIRE(alignment.add_line("a = f(b, 1)", "c =  f(d, 1)"));
  CHECK(alignment.pairs().size() == 2);
  CHECK(alignment.same() == 6);
  CHECK_FALSE(Alignment().add_line("a = b", "a = b;"));
  CHECK_FALSE(Alignment().add_line("a b c d e f g h i", "1a 2b 3c 4d 5e 6f 7g 8h 9i"));
}
