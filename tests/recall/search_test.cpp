#include "daemon/recall/search.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "daemon/recall/match.h"
#include "daemon/recall/scroll.h"

using namespace efimd::recall;

namespace {

constexpr std::size_t kNeighboursMax = 48;  // of search.cpp

std::string random_lines(std::mt19937& random, std::size_t bytes) {
  static constexpr std::array<std::string_view, 6> kPieces = {
      "ab", "call(", "x = ", ");\n", "\n  ", "y"};
  std::string text;
  while (text.size() < bytes) text += kPieces[random() % kPieces.size()];
  return text;
}

HeldBatch held(const std::string& name, std::mt19937& random) {
  std::vector<File> files;
  for (int i = 0; i < 3; ++i)
    files.push_back({name + std::to_string(i) + ".c", random_lines(random, 2000)});
  HeldBatch batch{make_batch(files), std::vector<HeldBatch::State>(files.size()), files.size()};
  return batch;
}

/// How far each place agrees that a probe leads to, by the byte that it goes on with.
using Places = std::map<const char*, std::size_t>;

/// The places that no limit of neighbours keeps a search from, found by reading all anchors.
Places within_reach(const Asked& asked, const std::vector<HeldBatch>& batches) {
  struct Read {
    std::size_t agreed;
    std::optional<Match> match;
  };
  Places places;
  for (const Probe& probe : asked.probes()) {
    std::vector<Read> read;
    for (const HeldBatch& each : batches)
      for (std::size_t rank = 0; rank < each.batch->anchor_count(); ++rank) {
        const std::size_t anchor = each.batch->anchor(rank);
        const auto [file, at] = each.batch->file_at(anchor);
        const std::string_view text = each.batch->text(file);
        const std::size_t agreed = common_suffix(asked.context(probe), text.substr(0, at));
        read.push_back({agreed, asked.match(probe, text, at, agreed)});
      }
    std::ranges::sort(read, std::greater(), &Read::agreed);
    const std::size_t reach = read.at(kNeighboursMax).agreed;
    for (const auto& [agreed, match] : read) {
      if (agreed <= reach || !match) continue;
      std::size_t& most = places[match->text.data() + match->goes_on];
      most = std::max(most, match->agreed);
    }
  }
  return places;
}

/// What a search found: whose text, where it goes on there, and how far it agrees.
using Finding = std::tuple<std::string, std::size_t, std::size_t, Source>;

std::vector<Finding> findings_of(Search& search) {
  std::vector<Finding> found;
  for (const Match& match : search.take())
    found.emplace_back(match.path(), match.goes_on, match.agreed, match.source);
  std::ranges::sort(found);
  return found;
}

}  // namespace

TEST_CASE("texts in a scroll are scanned as each would be alone") {
  static constexpr std::array<std::string_view, 6> kPaths = {"0", "1", "2", "3", "4", "5"};
  std::mt19937 random(12);
  std::size_t compared = 0;
  for (int round = 0; round < 600; ++round) {
    std::vector<std::string> texts;
    Scroll scroll;
    for (std::uint64_t number = 0; number < 6; ++number) {
      texts.push_back(random_lines(random, random() % 60));
      const Source source = number % 2 == 0 ? Source::kDeleted : Source::kAccepted;
      scroll.append(texts.back(), source, kPaths[number], number);
    }
    scroll.drop_first();
    scroll.forget("3");
    REQUIRE(scroll.count() == 4);
    CHECK(scroll.first_number() == 1);
    const std::string text = random_lines(random, 90);
    const Asked asked(text, 40 + random() % 50);
    Search alone(asked), together(asked);
    for (const std::size_t number : {1U, 2U, 4U, 5U})
      alone.scan(Scanned{texts[number], number % 2 == 0 ? Source::kDeleted : Source::kAccepted,
                         kPaths[number]});
    together.scan(scroll);
    const std::vector<Finding> found = findings_of(together);
    compared += found.size();
    CHECK(found == findings_of(alone));
  }
  CHECK(compared > 500);
}

TEST_CASE("no match reaches from one text of a scroll into the next") {
  using namespace std::string_literals;
  // What the user typed has the zero byte that stands between texts.
  const std::string text = "call(\0thing"s;
  const Asked asked(text, 8);
  const std::string whole = "call(\0thing);\n"s;
  Search one(asked), two(asked);
  one.scan(Scanned{whole, Source::kDeleted, "a"});
  CHECK(findings_of(one).size() == 1);
  Scroll scroll;
  scroll.append("call(", Source::kDeleted, "a", 1);
  scroll.append("thing);\n", Source::kDeleted, "b", 2);
  REQUIRE(scroll.text().starts_with(whole));
  two.scan(scroll);
  CHECK(findings_of(two).empty());
}

TEST_CASE("a search finds the places that agree best, as reading all of them does") {
  std::mt19937 random(11);
  const std::vector<HeldBatch> batches = {held("a", random), held("b", random), held("c", random)};
  std::vector<const HeldBatch*> pointers;
  for (const HeldBatch& each : batches) pointers.push_back(&each);
  std::size_t compared = 0, with_two_probes = 0;
  for (int round = 0; round < 400; ++round) {
    const std::string text = random_lines(random, 120);
    const Asked asked(text, 60 + random() % 60);
    Search search(asked);
    search.look_up(pointers, {});
    Places found;
    const std::vector<Match> matches = search.take();
    // Both probes may have found each place: half as many as are kept tell that none was left out.
    std::size_t least = matches.size() < kBatchMatchesMax / 2 ? 0 : std::string::npos;
    for (const Match& match : matches) {
      found[match.text.data() + match.goes_on] = match.agreed;
      least = std::min(least, match.agreed);
    }
    for (const auto& [place, agreed] : within_reach(asked, batches)) {
      // Of those that agree as little as the last one that was kept, any may be left out.
      if (agreed <= std::max(least, std::size_t{4})) continue;
      REQUIRE(found.contains(place));
      CHECK(found[place] == agreed);
      ++compared;
    }
    with_two_probes += asked.probes().size() == 2 ? 1 : 0;
  }
  CHECK(compared > 1000);
  CHECK(with_two_probes > 50);
}
