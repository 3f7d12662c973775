// KV-5 over a device whose logits name every token that a row sees: any wrong page, slot or stale
// row shows.
#include <catch2/catch.hpp>
#include <map>

#include "engine/local_engine.h"
#include "tests/engine/kv/edit_script.h"
#include "tests/engine/kv/fake_store.h"
#include "tests/support/fake_backend.h"

using namespace efimd;
using namespace efimd::engine;
using efimd::test::EditScript;
using efimd::test::FakeBackend;

namespace {

/// One editing session on a small KV budget, with stops, device failures, closed documents and
/// restarts in between; the store outlives the engines, loses pages and misses some.
class Session {
 public:
  Session(int pages, unsigned seed)
      : device_{.page_count = pages}, script_({.window_tokens = pages * kPageTokens}, seed) {
    start();
  }

  void step() {
    script_.step();
    if (script_.chance(40)) close_all();
    if (script_.chance(15)) disturb();
    if (script_.chance(10)) idle();
    if (script_.chance(60)) restart();
    std::vector<TokenId> tokens = script_.prompt();
    const SequenceId sequence = sequence_of_document();
    prefill(sequence, tokens);
    script_.offer(generate(sequence, tokens));
    REQUIRE(engine_->pool().check() == "");
  }
  int reused() const { return reused_; }
  int evaluated() const { return evaluated_; }
  int restored() const { return restored_; }
  /// Pages that idle time handed to the store.
  int written() const { return written_; }

 private:
  SequenceId sequence_of_document() {
    const auto [entry, added] = sequences_.try_emplace(script_.document());
    if (added) entry->second = engine_->open_sequence();
    // Document 0 is excluded.
    engine_->set_source(entry->second, SourceId{static_cast<std::uint32_t>(script_.document())});
    return entry->second;
  }
  void start() {
    auto backend = std::make_unique<FakeBackend>(device_);
    backend_ = backend.get();
    EngineOptions options;
    options.store = store_;
    engine_ =
        LocalEngine::make(
            {.layers = device_.layers, .vocabulary = device_.vocabulary, .context_tokens = 4096},
            nullptr, std::move(backend), options)
            .value();
  }
  /// The store loses a page or misses an answer now and then.
  void idle() {
    for (int page = script_.below(30); page > 0; --page) {
      if (engine_->write_behind(Leaving::kNo) != WriteBehind::kWrote) break;
      ++written_;
    }
    if (!store_->pages.empty() && script_.chance(2))
      store_->pages.erase(
          std::next(store_->pages.begin(), script_.below(static_cast<int>(store_->pages.size()))));
    store_->answers_left = script_.chance(4) ? script_.below(3) : 1 << 30;
    if (script_.chance(2))
      REQUIRE(engine_->restore(script_.prompt(), SourceId::kNone, {}).has_value());
    REQUIRE(engine_->pool().check() == "");
  }
  void restart() {
    sequences_.clear();
    engine_.reset();
    start();
  }
  void close_all() {
    for (const auto& [document, sequence] : sequences_) engine_->close_sequence(sequence);
    sequences_.clear();
  }

  /// A hold that is stopped after its first step, or whose device fails somewhere in it.
  void disturb() {
    std::stop_source stop;
    if (script_.chance(2))
      backend_->operations_until_failure = script_.below(40);
    else
      backend_->on_step = [&stop](const Step&) { stop.request_stop(); };
    static_cast<void>(
        engine_->prefill(sequence_of_document(), script_.prompt(), {.stop = stop.get_token()}));
    backend_->on_step = nullptr;
    backend_->operations_until_failure = -1;
    REQUIRE(engine_->pool().check() == "");
    script_.step();
  }

  void prefill(SequenceId sequence, const std::vector<TokenId>& tokens) {
    Result<PromptCost> cost = engine_->prefill(sequence, tokens, {});
    if (!cost) {
      REQUIRE(cost.error().fault == Fault::kWindowFull);
      for (auto at = sequences_.begin(); at != sequences_.end();) {
        if (at->second != sequence) engine_->close_sequence(at->second);
        at = at->second != sequence ? sequences_.erase(at) : std::next(at);
      }
      cost = engine_->prefill(sequence, tokens, {});
    }
    REQUIRE(cost.has_value());
    REQUIRE(cost->reused + cost->evaluated == static_cast<int>(tokens.size()));
    REQUIRE(cost->restored <= cost->reused);
    restored_ += cost->restored;
    reused_ += cost->reused;
    evaluated_ += cost->evaluated;
    check(sequence, tokens);
  }

  std::vector<TokenId> generate(SequenceId sequence, std::vector<TokenId> tokens) {
    std::vector<TokenId> generated;
    for (int count = script_.below(40); count > 0; --count) {
      if (static_cast<int>(tokens.size()) == engine_->window_tokens()) break;
      const TokenId token = 3 + script_.below(device_.vocabulary - 3);
      if (!engine_->append(sequence, token)) break;  // other documents hold the budget
      tokens.push_back(token);
      generated.push_back(token);
      check(sequence, tokens);
    }
    return generated;
  }

  void check(SequenceId sequence, const std::vector<TokenId>& tokens) const {
    const auto held = engine_->held(sequence);
    REQUIRE(std::equal(held.begin(), held.end(), tokens.begin(), tokens.end()));
    const auto logits = engine_->logits(sequence);
    REQUIRE(std::vector<float>(logits.begin(), logits.end()) ==
            FakeBackend::logits_behind(tokens, device_));
  }

  FakeBackend::Options device_;
  EditScript script_;
  std::shared_ptr<test::FakeStore> store_ = std::make_shared<test::FakeStore>();
  FakeBackend* backend_;
  std::unique_ptr<LocalEngine> engine_;
  std::map<std::size_t, SequenceId> sequences_;
  int reused_ = 0;
  int evaluated_ = 0;
  int restored_ = 0;
  int written_ = 0;
};

}  // namespace

TEST_CASE(
    "reused KV gives exactly the logits of a fresh evaluation, over thousands of edits (KV-5)") {
  const auto [pages, seed] =
      GENERATE(std::pair{6, 11U}, std::pair{9, 12U}, std::pair{14, 13U}, std::pair{40, 14U});
  Session session(pages, seed);
  for (int step = 0; step < 1500; ++step) {
    INFO("pages " << pages << ", step " << step);
    session.step();
  }
  CHECK(session.reused() > 2 * session.evaluated());
  CHECK(session.restored() > 500);
  CHECK(session.written() > 100);
}
