#include "tests/bench/completion/returns.h"

#include <catch2/catch.hpp>
#include <random>

using namespace efimd::bench;

namespace {

// Several for each file. AddressSanitizer takes 30 s of processor time for 2000.
#ifdef EFIMD_SANITIZED
constexpr int kVisits = 500;
#else
constexpr int kVisits = 2000;
#endif

std::size_t anew(const std::vector<Visit>& visits, Tier tier, KeepOrder order, int capacity) {
  return replay_visits(visits, {tier, order, capacity}).anew;
}

}  // namespace

TEST_CASE("a trace of visits is read, and what is none is refused with its line") {
  const auto visits = parse_visits("# of somebody\n0,1,100,2,50\n\n60,1,120");
  REQUIRE(visits);
  REQUIRE(visits->size() == 3);
  CHECK((*visits)[1].file == 2);
  CHECK((*visits)[2].tokens == 120);
  for (const char* bad : {"", "# nothing\n", "0,1,100\n5\n", "0,1\n", "0,0,5\n", "0,1,0\n", "x\n",
                          "0,1,5,\n", "0,1,5,2\n", "0,9999,5\n", "0,1,99999999999\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_visits(bad).has_value());
  }
}

TEST_CASE("what was there and what was evaluated anew is counted, in memory and on disk") {
  const std::vector<Visit> visits = {{1, 64}, {2, 64}, {1, 64}, {3, 64}, {2, 64}};
  for (const Tier tier : {Tier::kMemory, Tier::kDisk}) {
    const Returned oldest = replay_visits(visits, {tier, KeepOrder::kOldest, 128});
    CHECK(oldest.returns == 2);
    CHECK(oldest.whole == 1);
    CHECK(oldest.tokens == 128);
    CHECK(oldest.anew == 64);
    CHECK(anew(visits, tier, KeepOrder::kBest, 128) == 0);
    CHECK(anew(visits, tier, KeepOrder::kOldest, 192) == 0);
  }
}

TEST_CASE("files that one works in survive a look into many others, with the daemon's order") {
  std::vector<Visit> work;
  for (int at = 0; at < 400; ++at) work.push_back({static_cast<std::uint32_t>(1 + at % 3), 2000});
  const std::vector<Visit> visits = with_looks(work, 20);
  CHECK(visits.size() == 800);
  for (const Tier tier : {Tier::kMemory, Tier::kDisk}) {
    const std::size_t oldest = anew(visits, tier, KeepOrder::kOldest, 16384);
    const std::size_t returns = anew(visits, tier, KeepOrder::kReturns, 16384);
    CHECK(oldest > 19 * 3 * 1900);
    CHECK(returns < oldest / 5);
  }
}

TEST_CASE("no order keeps more than the one that knows the future") {
  std::mt19937 random(11);
  std::vector<Visit> visits;
  for (int at = 0; at < kVisits; ++at) {
    const auto file = static_cast<std::uint32_t>(1 + std::min(random() % 60, random() % 60));
    if (visits.empty() || visits.back().file != file)
      visits.push_back({file, static_cast<int>(100 + 37 * file)});
  }
  for (const int capacity : {4096, 16384, 32768})
    for (const Tier tier : {Tier::kMemory, Tier::kDisk}) {
      const std::size_t best = anew(visits, tier, KeepOrder::kBest, capacity);
      CHECK(best > 0);
      for (const KeepOrder order : {KeepOrder::kOldest, KeepOrder::kReturns})
        CHECK(best <= anew(visits, tier, order, capacity) + 64);
    }
}
