#include "daemon/prompt/choose.h"

#include <catch2/catch.hpp>

using namespace efimd;
using prompt::Candidate;
using prompt::StepCosts;
using prompt::View;

namespace {

Candidate candidate(View view, double ms, int remembered = -1, std::size_t increment = 0) {
  Candidate made;
  made.plan.anchor.view = view;
  made.plan.anchor.increment.resize(increment);
  made.remembered = remembered;
  made.ms = ms;
  return made;
}

std::size_t chosen(const std::vector<Candidate>& candidates) { return prompt::choose(candidates); }

}  // namespace

TEST_CASE("step costs follow straight lines between the measured points and past them") {
  const StepCosts costs{{{1, 30}, {4, 33}, {16, 57}, {64, 153}}};
  CHECK(costs.ms(0) == 0);
  CHECK(costs.ms(1) == 30);
  CHECK(costs.ms(10) == Approx(45));
  CHECK(costs.ms(128) == Approx(281));
  CHECK(costs.tokens_within(34) == 4);
  CHECK(costs.tokens_within(1) == 1);
  CHECK(costs.tokens_within(1e6) == 64);
  CHECK(StepCosts{{{8, 400}}}.ms(16) == Approx(800));
  CHECK(StepCosts{}.ms(100) == 25);
}

TEST_CASE(
    "a step that is cheaper than a smaller one, as noise makes it, never costs less than it") {
  const StepCosts costs{{{1, 30}, {4, 28}, {16, 57}}};
  CHECK(costs.ms(3) >= 28);
  CHECK(costs.ms(16) >= costs.ms(4));
}

TEST_CASE("a step bounds what smaller ones cost, and what larger ones do that are made of it") {
  StepCosts costs{{{1, 60}, {4, 70}, {16, 110}, {64, 300}, {256, 1200}}};
  costs.learn(64, 150);
  CHECK(costs.ms(1) == 60);
  CHECK(costs.ms(64) == 150);
  CHECK(costs.ms(256) == 600);
  costs.learn(16, 50);
  CHECK(costs.ms(1) == 50);
  CHECK(costs.ms(4) == 50);
  CHECK(costs.ms(64) == 150);
  costs.learn(64, 900);  // somebody else was at work
  CHECK(costs.ms(64) == 150);
}

TEST_CASE("A-6: a keystroke keeps the anchor that is there though a fuller one could be made") {
  CHECK(chosen({candidate(View::kNear, 30, 0), candidate(View::kFull, 140)}) == 0);
}

TEST_CASE("A-10: the fuller anchor takes over once it is whole") {
  CHECK(chosen({candidate(View::kNear, 30, 0), candidate(View::kFull, 31, 1)}) == 1);
  CHECK(chosen({candidate(View::kFull, 30, 0, 70), candidate(View::kFull, 31, 1)}) == 1);
}

TEST_CASE("A-10: a first answer takes the fullest view that comes soon, else the cheapest") {
  CHECK(chosen({candidate(View::kFull, 900), candidate(View::kShortAfter, 140),
                candidate(View::kNear, 100)}) == 1);
  CHECK(chosen({candidate(View::kFull, 140), candidate(View::kNear, 100)}) == 0);
  CHECK(chosen({candidate(View::kFull, 900), candidate(View::kShortAfter, 700),
                candidate(View::kNear, 250)}) == 2);
}

TEST_CASE("A-10: an anchor that is kept, but whose KV is gone, is not waited for") {
  CHECK(chosen({candidate(View::kFull, 190, 0), candidate(View::kNear, 140)}) == 1);
}

TEST_CASE("where nothing was measured the anchor that is kept is taken") {
  CHECK(chosen({candidate(View::kFull, 0, 0), candidate(View::kFull, 0)}) == 0);
}
