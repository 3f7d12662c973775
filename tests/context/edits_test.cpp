#include "daemon/context/edits.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace efimd;
using namespace efimd::context;

namespace {

/// A text of numbered lines whose edits are followed one by one.
struct Edited {
  explicit Edited(int lines) : document(text_of(lines)) { edits.follow(*document.snapshot(), 0); }
  static std::string text_of(int lines) {
    std::string text;
    for (int i = 0; i < lines; ++i)
      text += "line " + std::to_string(i) + " " + std::string(60, '.') + "\n";
    return text;
  }
  void replace(std::size_t begin, std::size_t end, const std::string& by) {
    REQUIRE(document.replace(begin, end, by));
    edits.follow(*document.snapshot(), ++order);
  }
  std::size_t line(std::size_t i) const { return document.snapshot()->lines().start(i); }
  std::string lines_of(std::size_t place) const {
    return edited_lines(edits.places()[place], *document.snapshot());
  }
  text::Document document;
  RecentEdits edits;
  std::uint64_t order = 0;
};

}  // namespace

TEST_CASE("an opened text has no edited places, and an edit makes one of whole lines") {
  Edited edited(10);
  CHECK(edited.edits.places().empty());
  edited.replace(edited.line(4) + 2, edited.line(4) + 4, "XY");
  REQUIRE(edited.edits.places().size() == 1);
  CHECK(edited.lines_of(0) == "liXY 4 " + std::string(60, '.') + "\n");
}

TEST_CASE("typing on makes one place of several lines, and places move with edits above them") {
  Edited edited(40);
  edited.replace(edited.line(30), edited.line(30), "int a;\n");
  edited.replace(edited.line(31), edited.line(31), "int b;\n");
  CHECK(edited.edits.places().size() == 1);
  edited.replace(0, 0, "above\n");
  REQUIRE(edited.edits.places().size() == 2);
  CHECK(edited.lines_of(0) == "above\n");
  CHECK(edited.lines_of(1) == "int a;\nint b;\n");
}

TEST_CASE("the place edited longest ago goes, and a blank or deleted one shows nothing") {
  Edited edited(100);
  for (std::size_t i = 0; i <= kEditedPlacesMax; ++i)
    edited.replace(edited.line(i * 10), edited.line(i * 10) + 1, "L");
  CHECK(edited.edits.places().size() == kEditedPlacesMax);
  CHECK(edited.lines_of(0).starts_with("Line 10"));
  Edited blank(3);
  blank.replace(0, blank.line(3), "  \n");
  CHECK(blank.lines_of(0).empty());
}

TEST_CASE("a large place shows its first lines, within the bound") {
  Edited edited(2);
  edited.replace(0, 0, Edited::text_of(200));
  CHECK(edited.lines_of(0).size() <= kEditedBytesMax);
  CHECK(edited.lines_of(0).starts_with("line 0"));
}

TEST_CASE("a version that does not remember its edits forgets all places") {
  Edited edited(20);
  edited.replace(0, 1, "L");
  for (std::size_t i = 0; i <= text::kRecentEditsMax; ++i)
    REQUIRE(edited.document.replace(0, 1, i % 2 == 0 ? "l" : "L"));
  edited.edits.follow(*edited.document.snapshot(), 9);
  CHECK(edited.edits.places().empty());
}

TEST_CASE("after any edits the places are in order, apart, and inside of the text") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Edited edited(60);
    for (int step = 0; step < 60; ++step) {
      const std::size_t size = edited.document.snapshot()->bytes().size();
      const std::size_t begin = random() % (size + 1);
      const std::size_t end = std::min(size, begin + random() % 90);
      edited.replace(begin, end, std::string(random() % 90, 'x'));
      std::size_t before = 0;
      for (const EditedPlace& place : edited.edits.places()) {
        CAPTURE(seed, step, place.begin, place.end);
        CHECK(place.begin >= before);
        CHECK(place.end >= place.begin);
        CHECK(place.end <= edited.document.snapshot()->bytes().size());
        before = place.end;
      }
    }
  }
}
