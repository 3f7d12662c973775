#include "engine/local_engine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <stop_token>

#include "tests/support/fake_backend.h"

using namespace efimd;
using namespace efimd::engine;
using efimd::test::FakeBackend;

namespace {

std::vector<TokenId> counting(int count, TokenId first = 0) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  for (int at = 0; at < count; ++at) tokens[static_cast<std::size_t>(at)] = (first + at) % 61;
  return tokens;
}

struct Bench {
  explicit Bench(int pages = 32, int context = 4096) : options{.page_count = pages} {
    auto device = std::make_unique<FakeBackend>(options);
    backend = device.get();
    engine = LocalEngine::make({.digest = {7, 7},
                                .layers = options.layers,
                                .vocabulary = options.vocabulary,
                                .context_tokens = context},
                               nullptr, std::move(device), {})
                 .value();
  }

  /// Holds and checks what must always be true of a held prompt; returns the tokens evaluated.
  int prefill(SequenceId sequence, const std::vector<TokenId>& tokens) {
    const auto cost = engine->prefill(sequence, tokens, {});
    REQUIRE(cost.has_value());
    CHECK(cost->reused + cost->evaluated == static_cast<int>(tokens.size()));
    check(sequence, tokens);
    return cost->evaluated;
  }
  void check(SequenceId sequence, const std::vector<TokenId>& tokens) const {
    const auto held = engine->held(sequence);
    CHECK(std::vector<TokenId>(held.begin(), held.end()) == tokens);
    const auto logits = engine->logits(sequence);
    CHECK(std::vector<float>(logits.begin(), logits.end()) ==
          FakeBackend::logits_behind(tokens, options));
    CHECK(engine->pool().check() == "");
  }

  FakeBackend::Options options;
  FakeBackend* backend;
  std::unique_ptr<LocalEngine> engine;
};

}  // namespace

TEST_CASE("typing behind a held prompt evaluates the typed tokens only") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  CHECK(bench.prefill(sequence, counting(100)) == 100);
  CHECK(bench.prefill(sequence, counting(101)) == 1);
  CHECK(bench.prefill(sequence, counting(103)) == 2);
}

TEST_CASE("the same prompt again evaluates nothing while its logits are at hand") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(70));
  CHECK(bench.prefill(sequence, counting(70)) == 0);
  const SequenceId other = bench.engine->open_sequence();
  bench.prefill(other, counting(20, 5));
  CHECK(bench.prefill(sequence, counting(70)) == 0);
}

TEST_CASE("a prompt whose KV is there but not its logits costs its last token") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(70));
  CHECK(bench.prefill(sequence, counting(64)) == 1);
  CHECK(bench.prefill(sequence, counting(40)) == 1);
  CHECK(bench.prefill(sequence, counting(1)) == 1);
}

TEST_CASE("a prompt whose completion is given up costs nothing, for its logits are kept") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(70));
  for (int rows = 0; rows <= Engine::kLogitsRowsKept; ++rows)
    REQUIRE(bench.engine->append(sequence, 9).has_value());
  CHECK(bench.prefill(sequence, counting(70)) == 0);
  bench.check(sequence, counting(70));
}

TEST_CASE("logits of the last tokens cost those whose rows are not at hand") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  const auto rows_cost = [&](int tokens, int rows = 3) {
    const auto cost = bench.engine->prefill(sequence, counting(tokens), {.logits_rows = rows});
    REQUIRE(cost.has_value());
    for (int back = 0; back < rows; ++back) {
      const auto logits = bench.engine->logits(sequence, back);
      CHECK(std::vector<float>(logits.begin(), logits.end()) ==
            FakeBackend::logits_behind(counting(tokens - back), bench.options));
    }
    return cost->evaluated;
  };
  CHECK(rows_cost(70) == 70);
  CHECK(rows_cost(71) == 1);
  CHECK(rows_cost(70) == 0);
  CHECK(rows_cost(69) == 3);
  // a key that is taken back costs nothing, with all the rows of a healed tail.
  CHECK(rows_cost(72, Engine::kLogitsRowsKept - 1) == 3);
  CHECK(rows_cost(73, Engine::kLogitsRowsKept - 1) == 1);
  REQUIRE(bench.engine->append(sequence, 9));
  CHECK(rows_cost(72, Engine::kLogitsRowsKept - 1) == 0);
  // The rows of another text are none of this one's.
  bench.prefill(sequence, counting(71, 5));
  CHECK(rows_cost(71) == 7);
}

TEST_CASE("looking ahead leaves the rows that the next key needs, and has those of what it read") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  std::vector<TokenId> typed = counting(70);
  REQUIRE(bench.engine->prefill(sequence, typed, {.logits_rows = 4}));
  REQUIRE(bench.engine->prefill(sequence, counting(80), {.logits_rows = 4, .ahead = true}));
  CHECK(bench.engine->prefill(sequence, counting(80), {.logits_rows = 4})->evaluated == 0);
  bench.check(sequence, counting(80));
  REQUIRE(bench.engine->prefill(sequence, typed, {.logits_rows = 4}));
  REQUIRE(bench.engine->prefill(sequence, counting(80), {.logits_rows = 4, .ahead = true}));
  typed.push_back(7);
  CHECK(bench.engine->prefill(sequence, typed, {.logits_rows = 4})->evaluated == 1);
  bench.check(sequence, typed);
}

TEST_CASE("the logits of a draft are all there, though a step ends within it") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  const auto cost = bench.engine->prefill(sequence, counting(70), {.logits_rows = 17});
  REQUIRE(cost.has_value());
  for (int back = 0; back < 17; ++back) {
    const auto logits = bench.engine->logits(sequence, back);
    CHECK(std::vector<float>(logits.begin(), logits.end()) ==
          FakeBackend::logits_behind(counting(70 - back), bench.options));
  }
  bench.prefill(sequence, counting(71));
  CHECK(bench.engine->logits(sequence, Engine::kLogitsRowsKept).empty());
}

TEST_CASE("a step gives the logits of a whole draft, and a rewind keeps those before it") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(40));
  const std::vector<TokenId> all = counting(50);
  const BatchItem item{
      .sequence = sequence, .tokens = std::span(all).subspan(40), .logits_rows = 10};
  REQUIRE(bench.engine->step({&item, 1}));
  const auto row_is = [&](int tokens, int back) {
    const auto logits = bench.engine->logits(sequence, back);
    CHECK(std::vector<float>(logits.begin(), logits.end()) ==
          FakeBackend::logits_behind(counting(tokens), bench.options));
  };
  for (int back = 0; back < 10; ++back) row_is(50 - back, back);
  REQUIRE(bench.engine->rewind(sequence, counting(45)).value() == 45);
  row_is(45, 0);
  REQUIRE(bench.engine->append(sequence, counting(46).back()));
  row_is(46, 0);
}

TEST_CASE("a step of idle work makes way within a layer and leaves nothing behind") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(40));
  std::stop_source stop;
  bench.backend->on_step = [&](const Step&) { stop.request_stop(); };
  const std::vector<TokenId> more = counting(16, 7);
  const BatchItem item{.sequence = sequence, .tokens = more};
  CHECK(bench.engine->step({&item, 1}, stop.get_token()).error().fault == Fault::kStopped);
  bench.backend->on_step = nullptr;
  CHECK(bench.engine->held(sequence).size() == 40);
  CHECK(bench.engine->pool().check() == "");
  bench.prefill(sequence, counting(45));
}

TEST_CASE("a fork holds the same tokens, shares full pages and goes its own way") {
  Bench bench;
  const SequenceId first = bench.engine->open_sequence();
  bench.prefill(first, counting(70));
  const Result<SequenceId> second = bench.engine->fork(first);
  CHECK(bench.engine->pool().pages_used() == 4);
  bench.check(*second, counting(70));
  REQUIRE(bench.engine->append(*second, 3).has_value());
  REQUIRE(bench.engine->append(first, 4).has_value());
  std::vector<TokenId> expected = counting(70);
  expected.push_back(4);
  bench.check(first, expected);
  expected.back() = 3;
  bench.check(*second, expected);
  CHECK(bench.engine->pool().check() == "");
}

TEST_CASE("a fork of the sequence whose logits are the oldest has them") {
  Bench bench;
  const SequenceId first = bench.engine->open_sequence();
  bench.prefill(first, counting(10));
  for (int i = 1; i < 8; ++i) bench.prefill(bench.engine->open_sequence(), counting(10 + i));
  bench.check(bench.engine->fork(first).value(), counting(10));
}

TEST_CASE("a fork that finds no page says so and leaves nothing behind") {
  Bench bench(3);
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(70));
  CHECK(bench.engine->fork(sequence).error().fault == Fault::kWindowFull);
  CHECK(bench.engine->pool().pages_used() == 3);
  CHECK(bench.engine->pool().check() == "");
}

TEST_CASE("adopting tokens takes the KV that there is and evaluates nothing") {
  Bench bench;
  const SequenceId first = bench.engine->open_sequence();
  bench.prefill(first, counting(70));
  CHECK(bench.engine->resident(counting(100)) == 64);
  CHECK(bench.engine->resident(counting(100, 5)) == 0);
  const int rows = bench.backend->rows;
  const SequenceId second = bench.engine->open_sequence();
  CHECK(bench.engine->rewind(second, counting(100)) == 64);
  CHECK(bench.engine->rewind(first, counting(100)) == 70);
  CHECK(bench.engine->rewind(first, counting(40)) == 40);
  CHECK(bench.backend->rows == rows);
  CHECK(bench.engine->pool().check() == "");
}

TEST_CASE("only the newest sequences keep their logits; an older one costs a token") {
  Bench bench;
  std::vector<SequenceId> sequences;
  for (std::size_t at = 0; at < LocalEngine::kLogitsKeptMax + 1; ++at) {
    sequences.push_back(bench.engine->open_sequence());
    bench.prefill(sequences.back(), counting(5, static_cast<TokenId>(at)));
  }
  CHECK(bench.prefill(sequences[1], counting(5, 1)) == 0);
  CHECK(bench.engine->logits(sequences[0]).empty());
  CHECK(bench.prefill(sequences[0], counting(5, 0)) == 1);
}

TEST_CASE("an appended token is held and gives the logits behind it") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  std::vector<TokenId> tokens = counting(30);
  bench.prefill(sequence, tokens);
  for (TokenId token = 40; token < 50; ++token) {
    REQUIRE(bench.engine->append(sequence, token).has_value());
    tokens.push_back(token);
    bench.check(sequence, tokens);
  }
}

TEST_CASE("an accepted suggestion is in KV already") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  std::vector<TokenId> tokens = counting(50);
  bench.prefill(sequence, tokens);
  for (TokenId token = 1; token <= 20; ++token) {
    REQUIRE(bench.engine->append(sequence, token).has_value());
    tokens.push_back(token);
  }
  CHECK(bench.prefill(sequence, counting(50)) == 0);
  // The rewind kept 50 tokens and a page of the rest; what stays after the sealed page is
  // evaluated again.
  CHECK(bench.prefill(sequence, tokens) == 70 - 64);
}

TEST_CASE("a closed sequence's full pages serve the next one") {
  Bench bench;
  const SequenceId first = bench.engine->open_sequence();
  bench.prefill(first, counting(100));
  bench.engine->close_sequence(first);
  CHECK(bench.engine->kv_usage().used_bytes == 3 * 1024);
  const SequenceId second = bench.engine->open_sequence();
  CHECK(bench.prefill(second, counting(100)) == 4);
  CHECK(bench.engine->held(first).empty());
  CHECK(bench.engine->prefill(first, counting(3), {}).error().fault == Fault::kNotFound);
}

TEST_CASE("a stop between steps keeps what was evaluated, and the next hold goes on from there") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  std::stop_source stop;
  bench.backend->on_step = [&](const Step&) {
    if (bench.backend->steps == 2) stop.request_stop();
  };
  const auto stopped = bench.engine->prefill(sequence, counting(100), {.stop = stop.get_token()});
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().fault == Fault::kStopped);
  CHECK(stopped.error().what == "stopped after 48 of 100 tokens");
  CHECK(bench.engine->held(sequence).size() == 48);
  CHECK(bench.engine->logits(sequence).empty());
  CHECK(bench.prefill(sequence, counting(100)) == 52);
}

TEST_CASE("a device that fails in a step costs that step and nothing before it") {
  const int operations = GENERATE(range(0, 23));
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(40));
  bench.backend->operations_until_failure = operations;
  const auto failed = bench.engine->prefill(sequence, counting(72), {});
  REQUIRE_FALSE(failed.has_value());
  CHECK(failed.error().fault == Fault::kDeviceLost);
  CHECK(bench.engine->held(sequence).size() == (operations < 11 ? 40U : 56U));
  CHECK(bench.engine->pool().check() == "");
  bench.prefill(sequence, counting(72));
}

TEST_CASE("a failed append leaves the sequence as it was") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  bench.prefill(sequence, counting(32));
  bench.backend->operations_until_failure = 3;
  CHECK(bench.engine->append(sequence, 1).error().fault == Fault::kDeviceLost);
  CHECK(bench.engine->held(sequence).size() == 32);
  CHECK(bench.engine->kv_usage().used_bytes == 1024);
  CHECK(bench.prefill(sequence, counting(32)) == 0);
}

TEST_CASE("the window is the smallest of the model's context, the option and the budget") {
  const FakeBackend::Options device{.page_count = 10};
  const auto window = [&](int context, EngineOptions options) {
    return LocalEngine::make({.layers = 2, .vocabulary = 61, .context_tokens = context}, nullptr,
                             std::make_unique<FakeBackend>(device), options)
        .value()
        ->window_tokens();
  };
  CHECK(window(100, {}) == 100);
  CHECK(window(4096, {.window_tokens_max = 200}) == 200);
  CHECK(window(4096, {}) == 320);
  CHECK(window(4096, {.kv_budget_bytes = 3 * 1024 + 5}) == 96);
  CHECK(LocalEngine::make({.layers = 2, .vocabulary = 61, .context_tokens = 9}, nullptr,
                          std::make_unique<FakeBackend>(device), {.kv_budget_bytes = 5})
            .error()
            .fault == Fault::kNoMemory);
}

TEST_CASE("a prompt or a token past the window is refused before anything is evaluated") {
  Bench bench(32, 64);
  const SequenceId sequence = bench.engine->open_sequence();
  const auto refused = bench.engine->prefill(sequence, counting(65), {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().fault == Fault::kWindowFull);
  CHECK(refused.error().what == "65 tokens do not fit the window of 64");
  CHECK(bench.backend->steps == 0);
  bench.prefill(sequence, counting(64));
  CHECK(bench.engine->append(sequence, 1).error().fault == Fault::kWindowFull);
  bench.check(sequence, counting(64));
}

TEST_CASE("a whole window can be edited anywhere although no page is left over") {
  Bench bench(4);
  const SequenceId sequence = bench.engine->open_sequence();
  std::vector<TokenId> tokens = counting(128);
  bench.prefill(sequence, tokens);
  for (const int at : {127, 64, 40, 5, 0, 90}) {
    tokens[static_cast<std::size_t>(at)] = 60;
    bench.prefill(sequence, tokens);
  }
}

TEST_CASE(
    "when other sequences hold the budget, prefill() says so at once; closing one makes room") {
  Bench bench(4);
  const SequenceId idle = bench.engine->open_sequence();
  const SequenceId wanted = bench.engine->open_sequence();
  bench.prefill(idle, counting(80));
  const int rows = bench.backend->rows;
  const auto refused = bench.engine->prefill(wanted, counting(64, 9), {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().fault == Fault::kWindowFull);
  CHECK(refused.error().what.find("needs 2 more KV pages, but other sequences leave 1 of 4") !=
        std::string::npos);
  CHECK(bench.backend->rows == rows);
  bench.engine->close_sequence(idle);
  CHECK(bench.prefill(wanted, counting(64, 9)) == 64);
}

TEST_CASE("empty prompts and tokens outside the vocabulary are refused") {
  Bench bench;
  const SequenceId sequence = bench.engine->open_sequence();
  CHECK(bench.engine->prefill(sequence, {}, {}).error().fault == Fault::kBadInput);
  CHECK(bench.engine->prefill(sequence, std::vector<TokenId>{1, 61}, {}).error().what ==
        "token 61 is outside the vocabulary of 61");
  CHECK(bench.engine->append(sequence, kNoToken).error().fault == Fault::kBadInput);
  CHECK(bench.engine->held(sequence).empty());
}

TEST_CASE("several sequences evaluated in one step give what each gives alone") {
  Bench bench;
  const SequenceId first = bench.engine->open_sequence();
  const SequenceId second = bench.engine->open_sequence();
  const SequenceId third = bench.engine->open_sequence();
  bench.prefill(first, counting(31));
  bench.prefill(second, counting(50, 3));
  const int steps = bench.backend->steps;
  const std::vector<TokenId> a = {1, 2, 3}, b = {4}, c = counting(9, 20);
  REQUIRE(bench.engine->step(std::vector<BatchItem>{{first, a, 1}, {second, b, 0}, {third, c, 1}})
              .has_value());
  CHECK(bench.backend->steps == steps + 1);
  CHECK(bench.engine->logits(second).empty());
  std::vector<TokenId> expected = counting(31);
  expected.insert(expected.end(), a.begin(), a.end());
  bench.check(first, expected);
  bench.check(third, c);
  expected = counting(50, 3);
  expected.push_back(4);
  bench.prefill(second, expected);
}

TEST_CASE("a batch is refused whole when one of its items cannot be") {
  Bench bench(2);
  const SequenceId first = bench.engine->open_sequence();
  const SequenceId second = bench.engine->open_sequence();
  bench.prefill(first, counting(32));
  const std::vector<TokenId> token = {1};
  const auto evaluate = [&](const std::vector<BatchItem>& items) {
    return bench.engine->step(items).error().fault;
  };
  CHECK(evaluate({{first, token, 1}, {first, token, 1}}) == Fault::kBadInput);
  CHECK(evaluate({{first, {}, 1}}) == Fault::kBadInput);
  CHECK(evaluate({{first, counting(17), 1}}) == Fault::kBadInput);
  CHECK(evaluate({{first, token, 1}, {second, token, 1}}) == Fault::kWindowFull);
  CHECK(bench.engine->held(first).size() == 32);
  CHECK(bench.engine->held(second).empty());
  CHECK(bench.engine->kv_usage().used_bytes == 1024);
}

namespace {

using Cells = std::set<std::uint64_t>;

Cells cells_of(Bench& bench) {
  Cells found;
  std::vector<std::uint64_t> page(bench.backend->page_bytes() / sizeof(std::uint64_t));
  for (PageIndex at = 0; at < bench.backend->page_count(); ++at) {
    REQUIRE(bench.backend->read_page(at, std::as_writable_bytes(std::span(page))).has_value());
    found.insert(page.begin(), page.end());
  }
  found.erase(0);
  return found;
}

std::size_t left_of(const Cells& before, Bench& bench) {
  return static_cast<std::size_t>(std::ranges::count_if(
      cells_of(bench), [&](std::uint64_t cell) { return before.contains(cell); }));
}

constexpr SourceId kPurged{1};

void forget_whole(Engine& engine) {
  engine.forget(kPurged);
  while (engine.overwrite_some()) {
  }
}

}  // namespace

TEST_CASE("what was evicted before it is forgotten is gone, also from pages that others use") {
  Bench bench(4);
  const SequenceId first = bench.engine->open_sequence();
  bench.engine->set_source(first, kPurged);
  bench.prefill(first, counting(4 * kPageTokens));
  bench.engine->close_sequence(first);
  const Cells before = cells_of(bench);

  const SequenceId second = bench.engine->open_sequence();
  bench.prefill(second, counting(40, 7));
  REQUIRE(left_of(before, bench) > 2 * kPageTokens);
  forget_whole(*bench.engine);
  CHECK(left_of(before, bench) == 0);
  CHECK(bench.prefill(second, counting(40, 7)) == 0);
  CHECK(bench.prefill(second, counting(41, 7)) == 1);
  CHECK(bench.engine->pool().pages_used() == 2);
}

TEST_CASE("a page that cannot be moved in a full pool loses its rows, which are evaluated again") {
  Bench bench(4);
  const SequenceId full = bench.engine->open_sequence();
  bench.prefill(full, counting(2 * kPageTokens, 9));
  const SequenceId second = bench.engine->open_sequence();
  bench.prefill(second, counting(40, 7));
  const Cells before = cells_of(bench);
  bench.prefill(second, counting(33, 7));
  REQUIRE(left_of(before, bench) == before.size());
  forget_whole(*bench.engine);
  CHECK(bench.engine->held(second).size() == kPageTokens);
  CHECK(left_of(before, bench) == before.size() - 2 * kPageTokens);  // both layers
  CHECK(bench.prefill(second, counting(41, 7)) == 41 - kPageTokens);
}
