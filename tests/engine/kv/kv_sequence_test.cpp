#include "engine/kv/kv_sequence.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "engine/backend/backend.h"
#include "tests/support/fake_backend.h"

using namespace efimd;
using namespace efimd::engine;
using efimd::test::FakeBackend;

namespace {

constexpr int kPage = kPageTokens;

std::vector<TokenId> counting(int count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct Bench {
  explicit Bench(int pages)
      : options{.page_count = pages, .step_tokens_max = 4096},
        backend(options),
        pool(pages, {}),
        tier(pool, backend, nullptr) {}

  /// Evaluates `tokens` after what the sequence holds; its logits must be those of a fresh
  /// evaluation.
  void extend(KvSequence& sequence, const std::vector<TokenId>& tokens) {
    const int count = static_cast<int>(tokens.size());
    REQUIRE(sequence.reserve(count).has_value());
    const StepSequence part{.first = 0,
                            .count = count,
                            .position = sequence.size(),
                            .page_table = sequence.page_table()};
    const int last = count - 1;
    const auto logits =
        forward(backend, options.layers,
                {.tokens = tokens, .sequences = {&part, 1}, .logits_rows = {&last, 1}});
    REQUIRE(logits.has_value());
    sequence.commit(tokens);
    const std::vector<TokenId> held(sequence.tokens().begin(), sequence.tokens().end());
    CHECK(std::vector<float>(logits->begin(), logits->end()) ==
          FakeBackend::logits_behind(held, options));
    CHECK(pool.check() == "");
  }

  FakeBackend::Options options;
  FakeBackend backend;
  KvPool pool;
  StoreTier tier;
};

}  // namespace

TEST_CASE(
    "two sequences share the full pages of a common prefix and nothing of the partial one (KV-2)") {
  Bench bench(16);
  KvSequence first(bench.pool, bench.backend, bench.tier);
  KvSequence second(bench.pool, bench.backend, bench.tier);
  bench.extend(first, counting(2 * kPage + 5));
  CHECK(second.reuse(counting(2 * kPage + 5)).value() == 2 * kPage);
  CHECK(second.page_table()[1] == first.page_table()[1]);
  CHECK(bench.pool.pages_used() == 3);
  bench.extend(second, counting(5, 2 * kPage));
  CHECK(second.page_table()[2] != first.page_table()[2]);
  bench.extend(first, {1});
  bench.extend(second, {2});
}

TEST_CASE("sequences that evaluate the same text meet in the same pages") {
  Bench bench(16);
  KvSequence first(bench.pool, bench.backend, bench.tier);
  KvSequence second(bench.pool, bench.backend, bench.tier);
  bench.extend(first, counting(3));
  bench.extend(second, counting(3));
  bench.extend(first, counting(kPage, 3));
  bench.extend(second, counting(kPage, 3));
  CHECK(first.page_table()[0] == second.page_table()[0]);
  CHECK(bench.pool.pages_used() == 3);
}

TEST_CASE("a rewind inside a shared page copies its leading rows and leaves the page alone") {
  Bench bench(16);
  KvSequence first(bench.pool, bench.backend, bench.tier);
  KvSequence second(bench.pool, bench.backend, bench.tier);
  bench.extend(first, counting(2 * kPage));
  REQUIRE(second.reuse(counting(2 * kPage)).value() == 2 * kPage);
  REQUIRE(second.rewind_to(kPage + 7).value() == kPage + 7);
  CHECK(bench.backend.copies == 1);
  CHECK(second.page_table()[1] != first.page_table()[1]);
  bench.extend(second, {40, 41});
  bench.extend(first, {50});
}

TEST_CASE("a rewind to a page's end or inside the partial page copies nothing") {
  Bench bench(16);
  KvSequence sequence(bench.pool, bench.backend, bench.tier);
  bench.extend(sequence, counting(2 * kPage + 9));
  REQUIRE(sequence.rewind_to(2 * kPage + 4).value() == 2 * kPage + 4);
  bench.extend(sequence, {1, 2});
  REQUIRE(sequence.rewind_to(2 * kPage).value() == 2 * kPage);
  REQUIRE(sequence.rewind_to(kPage).value() == kPage);
  CHECK(bench.backend.copies == 0);
  bench.extend(sequence, {3});
}

TEST_CASE("text that was rewound and comes back is found by content") {
  Bench bench(16);
  KvSequence sequence(bench.pool, bench.backend, bench.tier);
  bench.extend(sequence, counting(3 * kPage));
  REQUIRE(sequence.rewind_to(10).value() == 10);
  bench.extend(sequence, {99});
  CHECK(sequence.reuse(counting(3 * kPage + 1)).value() == 3 * kPage);
  bench.extend(sequence, {7});
}

TEST_CASE("reuse keeps the common prefix down to the token, across a page's middle") {
  Bench bench(16);
  KvSequence sequence(bench.pool, bench.backend, bench.tier);
  bench.extend(sequence, counting(2 * kPage + 6));
  std::vector<TokenId> edited = counting(2 * kPage + 6);
  edited[kPage + 20] = 500;
  CHECK(sequence.reuse(edited).value() == kPage + 20);
  CHECK(sequence.size() == kPage + 20);
  bench.extend(sequence, {500});
}

TEST_CASE("with no page left for a copy, a page of one owner is written again") {
  Bench bench(2);
  KvSequence sequence(bench.pool, bench.backend, bench.tier);
  bench.extend(sequence, counting(2 * kPage));
  KvSequence other(bench.pool, bench.backend, bench.tier);
  REQUIRE(sequence.rewind_to(kPage + 3).value() == kPage + 3);
  CHECK(bench.backend.copies == 0);
  bench.extend(sequence, {77});
}

TEST_CASE("with no page left for a copy, a shared page's rows are given up, never its content") {
  Bench bench(2);
  KvSequence first(bench.pool, bench.backend, bench.tier);
  KvSequence second(bench.pool, bench.backend, bench.tier);
  bench.extend(first, counting(2 * kPage));
  REQUIRE(second.reuse(counting(2 * kPage)).value() == 2 * kPage);
  CHECK(second.rewind_to(kPage + 3).value() == kPage);
  CHECK(second.size() == kPage);
  CHECK(second.reserve(1).error().fault == Fault::kWindowFull);
  CHECK(second.page_table().size() == 1);
  CHECK(bench.pool.check() == "");
  REQUIRE(first.rewind_to(kPage).has_value());
  bench.extend(second, {5});
}

TEST_CASE("a copy that fails leaves the sequence at the page's start") {
  Bench bench(4);
  KvSequence sequence(bench.pool, bench.backend, bench.tier);
  bench.extend(sequence, counting(2 * kPage));
  bench.backend.operations_until_failure = 0;
  const auto rewound = sequence.rewind_to(kPage + 3);
  REQUIRE_FALSE(rewound.has_value());
  CHECK(rewound.error().fault == Fault::kDeviceLost);
  CHECK(sequence.size() == kPage);
  bench.extend(sequence, {5});
}

TEST_CASE("reserved rows are not held, and an abandoned reservation leaves no page behind") {
  Bench bench(8);
  KvSequence sequence(bench.pool, bench.backend, bench.tier);
  bench.extend(sequence, counting(10));
  REQUIRE(sequence.reserve(3 * kPage).has_value());
  CHECK(sequence.size() == 10);
  CHECK(bench.pool.pages_used() == 4);
  sequence.abandon();
  CHECK(bench.pool.pages_used() == 1);
  bench.extend(sequence, {5});
}

TEST_CASE("a destroyed sequence leaves its full pages findable and its partial page free") {
  Bench bench(8);
  {
    KvSequence sequence(bench.pool, bench.backend, bench.tier);
    bench.extend(sequence, counting(kPage + 1));
  }
  CHECK(bench.pool.pages_used() == 1);
  KvSequence again(bench.pool, bench.backend, bench.tier);
  CHECK(again.reuse(counting(kPage + 1)).value() == kPage);
}
