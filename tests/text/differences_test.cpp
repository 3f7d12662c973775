#include "daemon/text/differences.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace efimd;
using text::Differences;
using Span = text::Differences::Span;

namespace {

/// Checks that everything outside of the spans is the same in both texts, and moves there.
void check(const Differences& differences, const std::string& older, const std::string& newer) {
  std::size_t old_at = 0, at = 0;
  const auto same_until = [&](std::size_t old_end, std::size_t end) {
    REQUIRE(old_at <= old_end);
    REQUIRE(old_end <= older.size());
    REQUIRE(end <= newer.size());
    REQUIRE(old_end - old_at == end - at);
    REQUIRE(older.compare(old_at, old_end - old_at, newer, at, end - at) == 0);
    for (std::size_t i = 1; i < old_end - old_at; ++i)
      REQUIRE(differences.moved(old_at + i) == at + i);
  };
  for (const Span& span : differences.spans()) {
    same_until(span.old_begin, span.begin);
    REQUIRE(span.begin <= span.end);
    REQUIRE(span.old_begin <= span.old_end);
    for (std::size_t place = span.old_begin + 1; place < span.old_end; ++place)
      REQUIRE(differences.moved(place) == std::nullopt);
    old_at = span.old_end;
    at = span.end;
  }
  same_until(older.size(), newer.size());
}

std::string letters(std::size_t count, std::mt19937& random) {
  std::string text;
  while (text.size() < count) text += static_cast<char>('a' + random() % 3);
  return text;
}

}  // namespace

TEST_CASE("the difference of two texts is what neither their beginnings nor their ends share") {
  CHECK(Differences::between("same", "same").spans().empty());
  CHECK(Differences::between("one two three", "one 2 three").spans() ==
        std::vector<Span>{{4, 7, 4, 5}});
  CHECK(Differences::between("", "new").spans() == std::vector<Span>{{0, 0, 0, 3}});
  CHECK(Differences::between("aaa", "aa").spans() == std::vector<Span>{{2, 3, 2, 2}});
  CHECK(Differences::between("aa", "aaa").spans() == std::vector<Span>{{2, 2, 2, 3}});
}

TEST_CASE("edits far from each other are spans of their own, and close ones are one") {
  Differences differences;
  differences.add({.begin = 1000, .removed = 10, .inserted = 4});
  differences.add({.begin = 100, .removed = 0, .inserted = 20});
  CHECK(differences.spans() == std::vector<Span>{{100, 100, 100, 120}, {1000, 1010, 1020, 1024}});
  CHECK(differences.moved(100) == 100);
  CHECK(differences.moved(500) == 520);
  CHECK(differences.moved(1005) == std::nullopt);
  CHECK(differences.moved(1010) == 1024);
  differences.add({.begin = 1024 + Differences::kApartMin - 1, .removed = 1, .inserted = 0});
  CHECK(differences.spans() == std::vector<Span>{{100, 100, 100, 120}, {1000, 1074, 1020, 1087}});
  differences.add({.begin = 110, .removed = 950, .inserted = 0});
  CHECK(differences.spans() == std::vector<Span>{{100, 1074, 100, 137}});
}

TEST_CASE("outside of its spans an edited text is the same as it was, however it was edited") {
  std::mt19937 random(20261127);
  std::size_t most = 0;
  for (int round = 0; round < 300; ++round) {
    const std::string older = letters(random() % 4000, random);
    std::string newer = older;
    Differences differences;
    for (std::size_t edits = random() % 30; edits > 0; --edits) {
      const std::size_t begin = random() % (newer.size() + 1);
      const std::size_t reach = random() % 8 == 0 ? 1500 : 20;
      const std::size_t removed = std::min(newer.size() - begin, random() % reach);
      const std::string inserted = letters(random() % reach, random);
      newer.replace(begin, removed, inserted);
      differences.add({.begin = begin, .removed = removed, .inserted = inserted.size()});
      check(differences, older, newer);
      most = std::max(most, differences.spans().size());
    }
    check(Differences::between(older, newer), older, newer);
  }
  CHECK(most == Differences::kSpansMax);
}
