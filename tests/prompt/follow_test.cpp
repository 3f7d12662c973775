#include "daemon/prompt/follow.h"

#include <catch2/catch.hpp>

using namespace efimd;
using prompt::Anchor;
using prompt::AnchorChange;
using prompt::Followed;

namespace {

/// A document of 100 bytes whose window is [20, 80) and whose hole is [40, 50).
struct Fixture {
  text::Document document{std::string(100, 'x')};
  Anchor anchor;
  Fixture() {
    anchor.serial = document.snapshot()->serial();
    anchor.window_begin = 20;
    anchor.cut = 40;
    anchor.resume = 50;
    anchor.window_end = 80;
  }
  Followed after(std::size_t begin, std::size_t end, std::string_view text) {
    REQUIRE(document.replace(begin, end, text));
    return prompt::follow(anchor, *document.snapshot());
  }
};

}  // namespace

TEST_CASE("A-1: an edit inside the hole moves only what is behind it") {
  Fixture fixture;
  const Followed followed = fixture.after(42, 44, "abcdef");
  CHECK(followed.change == AnchorChange::kKept);
  CHECK(followed.window_begin == 20);
  CHECK(followed.cut == 40);
  CHECK(followed.resume == 54);
  CHECK(followed.window_end == 84);
}

TEST_CASE("A-1: text typed at either border of the hole is in the hole") {
  CHECK(Fixture().after(40, 40, "ab").change == AnchorChange::kKept);
  CHECK(Fixture().after(50, 50, "ab").change == AnchorChange::kKept);
  CHECK(Fixture().after(50, 50, "ab").resume == 52);
}

TEST_CASE("A-1: an edit in front of the window shifts the whole anchor") {
  const Followed followed = Fixture().after(3, 5, "abcde");
  CHECK(followed.change == AnchorChange::kKept);
  CHECK(followed.window_begin == 23);
  CHECK(followed.cut == 43);
  CHECK(followed.resume == 53);
  CHECK(followed.window_end == 83);
}

TEST_CASE("A-1: an edit behind the window changes nothing") {
  const Followed followed = Fixture().after(80, 90, "");
  CHECK(followed.change == AnchorChange::kKept);
  CHECK(followed.resume == 50);
  CHECK(followed.window_end == 80);
}

TEST_CASE("A-1: an edit that touches before or after makes the anchor stale") {
  CHECK(Fixture().after(25, 26, "").change == AnchorChange::kEditOutside);
  CHECK(Fixture().after(39, 41, "").change == AnchorChange::kEditOutside);
  CHECK(Fixture().after(49, 51, "").change == AnchorChange::kEditOutside);
  CHECK(Fixture().after(60, 60, "y").change == AnchorChange::kEditOutside);
  CHECK(Fixture().after(0, 100, "").change == AnchorChange::kEditOutside);
}

TEST_CASE("the window's begin is lost only when its place was edited away") {
  CHECK(Fixture().after(25, 26, "").window_begin == 20);
  CHECK(Fixture().after(15, 25, "").window_begin == std::nullopt);
}

TEST_CASE("several edits are followed one by one") {
  Fixture fixture;
  REQUIRE(fixture.document.replace(0, 0, "12345"));
  const Followed followed = fixture.after(46, 47, "abc");
  CHECK(followed.change == AnchorChange::kKept);
  CHECK(followed.cut == 45);
  CHECK(followed.resume == 57);
}

TEST_CASE("more edits than a snapshot remembers lose the anchor") {
  Fixture fixture;
  for (std::size_t i = 0; i <= text::kRecentEditsMax; ++i)
    REQUIRE(fixture.document.replace(45, 45, "y"));
  CHECK(prompt::follow(fixture.anchor, *fixture.document.snapshot()).change ==
        AnchorChange::kHistoryLost);
}
