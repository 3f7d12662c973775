#include "daemon/completion/answer/drafter.h"

#include <catch2/catch.hpp>

#include "daemon/completion/answer/judged_chance.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

prompt::StepCosts costs(double one_ms, double seventeen_ms) {
  prompt::StepCosts made;
  made.points = {{1, one_ms}, {17, seventeen_ms}};
  return made;
}

constexpr DraftEvidence kGood{.agreed = 60, .votes = 8, .share = 0.9};
constexpr DraftEvidence kPoor{.agreed = 3, .votes = 1, .share = 0.1};

/// A candidate of recall's for "name(value);", each boundary with this chance.
recall::Candidate candidate(double chance) {
  recall::Candidate made;
  made.text = "name(value);";
  for (const std::size_t bytes : {4, 5, 10, 12}) made.boundaries.push_back({bytes, chance});
  made.shown = 12;
  return made;
}

}  // namespace

TEST_CASE("a draft is as long as it is likely, and as tokens in a step are cheap") {
  const DraftOdds odds;
  const auto cheap = costs(10, 12), dear = costs(10, 150);
  CHECK(odds.worthwhile(cheap, kGood, 0, 16) >= odds.worthwhile(cheap, kPoor, 0, 16));
  CHECK(odds.worthwhile(cheap, kGood, 0, 16) > odds.worthwhile(dear, kGood, 0, 16));
  CHECK(odds.worthwhile(dear, kPoor, 0, 16) == 0);
  CHECK(odds.worthwhile(cheap, kGood, 0, 3) == 3);
}

TEST_CASE("a token is likelier after a long match that many others support") {
  const DraftOdds odds;
  CHECK(odds.chance(kGood, 0) > odds.chance(kPoor, 0));
  CHECK(odds.chance(kGood, 4) > odds.chance(kGood, 0));  // the model has agreed four times
  for (const DraftEvidence& evidence : {kGood, kPoor})
    for (std::size_t position = 0; position < 17; ++position) {
      CHECK(odds.chance(evidence, position) > 0);
      CHECK(odds.chance(evidence, position) < 1);
    }
}

TEST_CASE("what drafted tokens really take counts more than the device's table") {
  DraftOdds odds;
  const auto table = costs(10, 12);
  for (int i = 0; i < 100; ++i) {
    odds.stepped(0, 1.0);
    odds.stepped(8, 1.0 + 8 * 1.5);
  }
  CHECK(odds.step_ms(table) == Approx(1.0).epsilon(0.01));
  CHECK(odds.added_ms(table, 8) == Approx(8 * 1.5).epsilon(0.01));
  CHECK(odds.added_ms(table, 2) == Approx(2 * 1.5).epsilon(0.01));
  CHECK(odds.worthwhile(table, kGood, 0, 16) == 0);
  CHECK_FALSE(odds.can_pay(table, 16));
}

TEST_CASE("a step that was held up does not end drafts for good") {
  DraftOdds odds;
  const auto table = costs(1, 1.2);
  odds.stepped(0, 1.0);
  odds.stepped(4, 50.0);
  CHECK_FALSE(odds.can_pay(table, 16));
  int refused = 0;
  while (!odds.can_pay(table, 16) && refused < 1000) ++refused;
  CHECK(refused < 100);
}

TEST_CASE("a draft ends before the token that makes a step much longer") {
  DraftOdds odds;
  const auto table = costs(1, 4);
  for (int i = 0; i < 300; ++i) {
    odds.stepped(0, 1.0);
    for (int drafted = 1; drafted < 9; ++drafted)
      odds.stepped(drafted, 1.0 + (drafted < 4 ? 0.3 : 3.5));
  }
  CHECK(odds.worthwhile(table, kGood, 0, 8) == 3);
}

TEST_CASE("drafts in the prompt's step become few where the model never chooses them") {
  DraftOdds odds;
  const auto table = costs(10, 25);
  const std::vector<engine::TokenId> draft = {1, 2, 3};
  CHECK(odds.worthwhile_with_prompt(table, 0.8, 0, 16) > 0);
  for (int i = 0; i < 300; ++i)
    odds.judged_with_prompt(0.8, draft, std::vector<prompt::CoveredToken>{});
  CHECK(odds.worthwhile_with_prompt(table, 0.8, 0, 16) == 0);
  CHECK(odds.worthwhile_with_prompt(table, 1, 0, 16) == 16);
}

TEST_CASE("the fitted chances are corrected by what the model chose") {
  DraftOdds odds;
  const double before = odds.chance(kGood, 0);
  for (int i = 0; i < 500; ++i) odds.judged(kGood, 0, 4, 0);
  CHECK(odds.chance(kGood, 0) < before / 4);
  for (int i = 0; i < 500; ++i) odds.judged(kGood, 0, 4, 4);
  CHECK(odds.chance(kGood, 0) >= before);
}

TEST_CASE("the rest of a draft is corrected apart from its beginning") {
  DraftOdds odds;
  const auto table = costs(10, 25);
  const std::size_t begun = odds.worthwhile(table, kGood, 0, 16);
  for (int i = 0; i < 300; ++i) {
    odds.judged(kGood, 3, 8, 0);
    odds.judged(0.9, 3, 8, 0);
  }
  CHECK(odds.worthwhile(table, kGood, 3, 16) == 0);
  CHECK(odds.worthwhile(table, kGood, 0, 16) == begun);
  CHECK(odds.worthwhile_with_prompt(table, 0.9, 3, 16) == 0);
  CHECK(odds.worthwhile_with_prompt(table, 0.9, 0, 16) > 0);
  CHECK(odds.worthwhile_with_prompt(table, 1, 3, 16) == 16);
  for (int i = 0; i < 300; ++i) odds.judged(1, 3, 8, 0);  // it is no guess: nothing is learned
  for (int i = 0; i < 900; ++i) odds.judged(0.9, 3, 8, 8);
  CHECK(odds.worthwhile_with_prompt(table, 0.9, 3, 16) > 8);
}

TEST_CASE("look-ups that bring nothing become rare, but do not end") {
  DraftOdds odds;
  const auto table = costs(1, 1.2);
  for (int i = 0; i < 200; ++i) odds.looked_up(0.2, 0);
  int tried = 0;
  for (int i = 0; i < 100; ++i) tried += odds.is_look_up_worthwhile(table, 16) ? 1 : 0;
  CHECK(tried > 0);
  CHECK(tried < 10);
  for (int i = 0; i < 200; ++i) odds.looked_up(0.2, 3);
  CHECK(odds.is_look_up_worthwhile(table, 16));
}

TEST_CASE("at first a look-up is tried where a draft that may be wrong spares more than it costs") {
  CHECK(DraftOdds().is_look_up_worthwhile(costs(10, 12), 16));
  CHECK_FALSE(DraftOdds().is_look_up_worthwhile(costs(0.3, 2.0), 16));
}

TEST_CASE("the model's word moves a candidate's chances, and cuts it where they fall") {
  const recall::Candidate before = candidate(0.6);
  const std::vector<JudgedToken> sure = {{4, 0.99}, {5, 0.99}, {10, 0.99}, {12, 0.99}};
  const std::vector<JudgedToken> doubtful = {{4, 0.99}, {5, 0.99}, {10, 1e-6}, {12, 0.5}};
  const recall::Candidate good = with_model(before, sure), bad = with_model(before, doubtful);
  CHECK(good.boundaries.back().chance > before.boundaries.back().chance);
  CHECK(bad.boundaries.back().chance < before.boundaries.back().chance);
  CHECK(bad.boundaries[1].chance > bad.boundaries[2].chance);
  for (const recall::Candidate& each : {good, bad})
    for (std::size_t i = 1; i < each.boundaries.size(); ++i)
      CHECK(each.boundaries[i].chance <= each.boundaries[i - 1].chance);
}

TEST_CASE("a token that ends before the first boundary speaks for it, but for no other") {
  const recall::Candidate half = candidate(0.6);
  const std::vector<JudgedToken> begun = {{1, 0.99}};
  REQUIRE(half.boundaries.front().bytes > 1);
  CHECK(judged_boundaries(half, begun).size() == 1);
  CHECK(with_model(half, begun).boundaries.front().chance >
        with_model(half, std::vector<JudgedToken>{{1, 1e-5}}).boundaries.front().chance);
}

TEST_CASE("behind the judged tokens recall's chances go on in proportion") {
  recall::Candidate half = candidate(0.8);
  half.boundaries[2].chance = half.boundaries[3].chance = 0.4;
  const recall::Candidate judged = with_model(half, std::vector<JudgedToken>{{5, 0.9}});
  CHECK(judged.boundaries[2].chance == Approx(judged.boundaries[1].chance / 2));
  CHECK(with_model(half, {}).boundaries[3].chance == half.boundaries[3].chance);
}
