#include "daemon/prompt/anchor.h"

#include <catch2/catch.hpp>

#include "tests/support/scripted_engine.h"

using namespace efimd;
using prompt::Anchor;
using State = prompt::Anchor::State;

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
  Anchor after(std::size_t begin, std::size_t end, std::string_view text) {
    REQUIRE(document.replace(begin, end, text));
    prompt::follow(anchor, *document.snapshot(), tokenizer);
    return anchor;
  }
  test::ScriptedTokenizer tokenizer;
};

}  // namespace

TEST_CASE("A-1: an edit inside the hole moves only what is behind it") {
  Fixture fixture;
  const Anchor followed = fixture.after(42, 44, "abcdef");
  CHECK(followed.state == State::kGood);
  CHECK(followed.window_begin == 20);
  CHECK(followed.cut == 40);
  CHECK(followed.resume == 54);
  CHECK(followed.window_end == 84);
}

TEST_CASE("A-1: text typed at either border of the hole is in the hole") {
  CHECK(Fixture().after(40, 40, "ab").state == State::kGood);
  CHECK(Fixture().after(50, 50, "ab").state == State::kGood);
  CHECK(Fixture().after(50, 50, "ab").resume == 52);
}

TEST_CASE("A-1: an edit in front of the window shifts the whole anchor") {
  const Anchor followed = Fixture().after(3, 5, "abcde");
  CHECK(followed.state == State::kGood);
  CHECK(followed.window_begin == 23);
  CHECK(followed.cut == 43);
  CHECK(followed.resume == 53);
  CHECK(followed.window_end == 83);
}

TEST_CASE("A-1: an edit behind the window changes nothing") {
  const Anchor followed = Fixture().after(80, 90, "");
  CHECK(followed.state == State::kGood);
  CHECK(followed.resume == 50);
  CHECK(followed.window_end == 80);
}

TEST_CASE("A-1: an edit inside before or after makes the anchor stale, and its offsets follow") {
  const Anchor in_before = Fixture().after(25, 26, "");
  CHECK(in_before.state == State::kStale);
  CHECK(in_before.window_begin == 20);
  CHECK(in_before.cut == 39);
  CHECK(in_before.window_end == 79);
  const Anchor in_after = Fixture().after(60, 60, "y");
  CHECK(in_after.state == State::kStale);
  CHECK(in_after.resume == 50);
  CHECK(in_after.window_end == 81);
}

TEST_CASE("A-1: an edit over a border loses the anchor's place") {
  CHECK(Fixture().after(39, 41, "").state == State::kLost);
  CHECK(Fixture().after(49, 51, "").state == State::kLost);
  CHECK(Fixture().after(15, 25, "").state == State::kLost);
  CHECK(Fixture().after(75, 85, "").state == State::kLost);
  CHECK(Fixture().after(0, 100, "").state == State::kLost);
}

TEST_CASE("several edits are followed one by one") {
  Fixture fixture;
  REQUIRE(fixture.document.replace(0, 0, "12345"));
  const Anchor followed = fixture.after(46, 47, "abc");
  CHECK(followed.state == State::kGood);
  CHECK(followed.cut == 45);
  CHECK(followed.resume == 57);
}

TEST_CASE("more edits than a snapshot remembers lose the anchor") {
  Fixture fixture;
  for (std::size_t i = 0; i <= text::kRecentEditsMax; ++i)
    REQUIRE(fixture.document.replace(45, 45, "y"));
  CHECK(fixture.after(45, 45, "y").state == State::kLost);
}
