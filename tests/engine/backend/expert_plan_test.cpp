#include "engine/backend/cpu/expert_plan.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

namespace efimd::test {
namespace {

using engine::cpu::ExpertPlan;

/// The expert of each of a row's choices, likeliest first.
std::vector<int> experts_of(const ExpertPlan& plan, int row) {
  std::vector<int> experts;
  for (const auto& choice : plan.choices(row)) {
    CHECK(plan.row_of(choice.slot) == row);
    for (const auto& share : plan.shares())
      if (choice.slot >= share.first && choice.slot < share.first + share.count)
        experts.push_back(share.expert);
  }
  return experts;
}

}  // namespace

TEST_CASE("a row goes to its likeliest experts, the lower index first among equals") {
  ExpertPlan plan(4, 2);
  const std::vector<float> logits = {1, 3, 2, 0, 5, 5, 5, 5, -2, -1, -9, -1};
  plan.route(logits, 3);
  CHECK(plan.slots() == 6);
  CHECK(experts_of(plan, 0) == std::vector{1, 2});
  CHECK(experts_of(plan, 1) == std::vector{0, 1});
  CHECK(experts_of(plan, 2) == std::vector{1, 3});
}

TEST_CASE("weights are the softmax over the experts that were chosen") {
  ExpertPlan plan(3, 2);
  plan.route(std::vector<float>{1, 3, 2}, 1);
  const auto choices = plan.choices(0);
  CHECK(choices[0].weight == Approx(1 / (1 + std::exp(-1.0))));
  CHECK(choices[1].weight == Approx(std::exp(-1.0) / (1 + std::exp(-1.0))));
}

TEST_CASE("an expert's rows lie side by side and experts without rows have no share") {
  ExpertPlan plan(5, 1);
  plan.route(std::vector<float>{0, 9, 0, 0, 0, 0, 0, 0, 9, 0, 0, 9, 0, 0, 0}, 3);
  REQUIRE(plan.shares().size() == 2);
  CHECK(plan.shares()[0].expert == 1);
  CHECK(plan.shares()[0].count == 2);
  CHECK(plan.row_of(plan.shares()[0].first) == 0);
  CHECK(plan.row_of(plan.shares()[0].first + 1) == 2);
  CHECK(plan.shares()[1].expert == 3);
  plan.route(std::vector<float>{0, 0, 0, 0, 1}, 1);  // nothing stays from the step before
  REQUIRE(plan.shares().size() == 1);
  CHECK(plan.slots() == 1);
}

TEST_CASE("logits that are no numbers come last, wherever they stand") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ExpertPlan plan(5, 2);
  plan.route(
      std::vector<float>{nan, -3, nan, -2, nan, nan, nan, nan, nan, -1, nan, nan, nan, nan, nan},
      3);
  CHECK(experts_of(plan, 0) == std::vector{3, 1});
  CHECK(experts_of(plan, 1) == std::vector{4, 0});
  CHECK(experts_of(plan, 2) == std::vector{0, 1});
}

}  // namespace efimd::test
