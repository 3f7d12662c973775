#include <catch2/catch.hpp>

#include "engine/backend/backend.h"
#include "tests/support/fake_backend.h"

using namespace efimd;
using namespace efimd::engine;
using efimd::test::FakeBackend;

namespace {

// The fake device refuses operations that come out of order, so each success here is also a check
// of the order.
struct Bench {
  FakeBackend::Options options{.page_count = 4, .layers = 3};
  FakeBackend backend{options};
  std::vector<TokenId> tokens = {5, 6, 7, 8, 9};
  std::vector<PageIndex> first_page = {2};
  std::vector<PageIndex> second_page = {0};
  std::vector<StepSequence> sequences = {
      {.first = 0, .count = 3, .position = 0, .page_table = first_page},
      {.first = 3, .count = 2, .position = 0, .page_table = second_page}};

  Result<std::span<const float>> run(const std::vector<int>& rows) {
    return forward(backend, options.layers,
                   {.tokens = tokens, .sequences = sequences, .logits_rows = rows});
  }
};

}  // namespace

TEST_CASE("a step runs every layer in order and gives the wanted rows of each sequence") {
  Bench bench;
  const std::vector<int> rows = {1, 2, 4};
  const auto logits = bench.run(rows);
  REQUIRE(logits.has_value());
  std::vector<float> expected;
  for (const std::vector<TokenId>& seen : {std::vector<TokenId>{5, 6}, {5, 6, 7}, {8, 9}}) {
    const std::vector<float> row = FakeBackend::logits_behind(seen, bench.options);
    expected.insert(expected.end(), row.begin(), row.end());
  }
  CHECK(std::vector<float>(logits->begin(), logits->end()) == expected);
}

TEST_CASE("a step that wants no logits computes none") {
  Bench bench;
  bench.backend.operations_until_failure =
      1 + 5 * bench.options.layers;  // only logits() would fail
  const auto logits = bench.run({});
  REQUIRE(logits.has_value());
  CHECK(logits->empty());
}

TEST_CASE("a failure of any operation is the step's failure") {
  const int operations = GENERATE(range(0, 17));
  Bench bench;
  bench.backend.operations_until_failure = operations;
  const std::vector<int> rows = {4};
  const auto logits = bench.run(rows);
  REQUIRE_FALSE(logits.has_value());
  CHECK(logits.error().fault == Fault::kDeviceLost);
}
