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
#include <vector>

#include "daemon/recall/match.h"

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

}  // namespace

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
