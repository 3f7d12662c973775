// KV-5 on the CPU device: over random edits the cached path gives the logits of a fresh evaluation, bit for bit (the
// tolerance is none), and greedy generation does not depend on what was cached.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/decode/sampler.h"
#include "engine/local_engine.h"
#include "engine/model/model.h"
#include "tests/engine/kv/edit_script.h"
#include "tests/engine/kv/stopping_backend.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::engine;
using efimd::test::EditScript;

namespace {

constexpr int kPages = 8;
constexpr int kWindow = kPages * kPageTokens;
constexpr int kGenerated = 12;

struct Device {
  Isa isa;
  KvType kv_type;
};

std::unique_ptr<Backend> cpu(const std::shared_ptr<const Model>& model, const Device& device,
                             int threads) {
  return make_cpu_backend(model, {.threads = threads,
                                  .isa = device.isa,
                                  .page_count = kPages,
                                  .kv_type = device.kv_type})
      .value();
}

/// Evaluates every prompt from nothing, on pages of its own and by the forward pass alone.
class Fresh {
 public:
  Fresh(const std::shared_ptr<const Model>& model, const Device& device)
      : layers_(model->shape().layers), backend_(cpu(model, device, 1)), pages_(kPages) {
    std::iota(pages_.rbegin(), pages_.rend(), 0);
  }

  /// Logits after `tokens`, of which the first `held` were evaluated by the call before.
  std::vector<float> evaluate(std::span<const TokenId> tokens, int held) {
    std::span<const float> logits;
    const int total = static_cast<int>(tokens.size());
    for (int done = held; done < total;) {
      const int count = std::min(backend_->step_tokens_max(), total - done);
      const StepSequence part{.count = count, .position = done, .page_table = pages_};
      const int last = count - 1;
      logits = forward(*backend_, layers_,
                       {.tokens = tokens.subspan(static_cast<std::size_t>(done),
                                                 static_cast<std::size_t>(count)),
                        .sequences = {&part, 1},
                        .logits_rows = {&last, 1}})
                   .value();
      done += count;
    }
    return {logits.begin(), logits.end()};
  }

 private:
  int layers_;
  std::unique_ptr<Backend> backend_;
  std::vector<PageIndex> pages_;
};

void check_same(std::span<const float> cached, const std::vector<float>& fresh) {
  REQUIRE(cached.size() == fresh.size());
  std::size_t worst = 0;
  for (std::size_t at = 0; at < fresh.size(); ++at) {
    if (!std::isfinite(fresh[at]) || !std::isfinite(cached[at]))
      FAIL("logit " << at << " is not finite");
    if (std::abs(cached[at] - fresh[at]) > std::abs(cached[worst] - fresh[worst])) worst = at;
  }
  INFO("worst logit " << worst << ": cached " << cached[worst] << ", fresh " << fresh[worst]);
  REQUIRE(std::equal(cached.begin(), cached.end(), fresh.begin()));
}

/// Greedy tokens after a held prompt, each step checked against the fresh path's own greedy step.
std::vector<TokenId> generate(Engine& engine, SequenceId sequence, Fresh& fresh,
                              std::vector<TokenId> tokens) {
  std::vector<TokenId> generated;
  check_same(engine.logits(sequence), fresh.evaluate(tokens, 0));
  while (generated.size() < kGenerated && static_cast<int>(tokens.size()) < kWindow) {
    const TokenId token = Sampler({}).choose(engine.logits(sequence));
    if (!engine.append(sequence, token)) break;  // other documents hold the budget
    tokens.push_back(token);
    generated.push_back(token);
    const std::vector<float> expected = fresh.evaluate(tokens, static_cast<int>(tokens.size()) - 1);
    check_same(engine.logits(sequence), expected);
  }
  return generated;
}

/// A prompt that idle time evaluates beside the others, in steps that are stopped within any layer.
class IdlePrompt {
 public:
  IdlePrompt(LocalEngine& engine, test::StoppingBackend& backend, Fresh& fresh)
      : engine_(engine), backend_(backend), fresh_(fresh) {}

  /// A step or a part of one. Once the prompt is whole its logits are checked, and another begins.
  void go_on(EditScript& script, int layers) {
    if (!sequence_) {
      tokens_ = script.prompt();
      sequence_ = engine_.open_sequence();
    }
    const int held = engine_.rewind(*sequence_, tokens_).value();
    const auto left = std::span(tokens_).subspan(static_cast<std::size_t>(held));
    if (left.empty()) return check();
    const int stopped = engine_.stopped_tokens(*sequence_);
    const std::size_t most = stopped > 0 ? static_cast<std::size_t>(stopped)
                                         : static_cast<std::size_t>(1 + script.below(24));
    const engine::BatchItem item{.sequence = *sequence_,
                                 .tokens = left.first(std::min(left.size(), most))};
    const int operations = layers * test::StoppingBackend::kOperationsOfLayer;
    const Result<void> done =
        engine_.step({&item, 1}, backend_.stop_at(script.below(operations + 1)));
    if (!done && done.error().fault == Fault::kWindowFull) close();
    REQUIRE(engine_.pool().check() == "");
  }

  void close() {
    if (sequence_) engine_.close_sequence(*sequence_);
    sequence_.reset();
  }

  int checked = 0;

 private:
  void check() {
    if (engine_.prefill(*sequence_, tokens_, {})) {
      check_same(engine_.logits(*sequence_), fresh_.evaluate(tokens_, 0));
      ++checked;
    }
    close();
  }

  LocalEngine& engine_;
  test::StoppingBackend& backend_;
  Fresh& fresh_;
  std::optional<SequenceId> sequence_;
  std::vector<TokenId> tokens_;
};

void run_session(const std::shared_ptr<const Model>& model, const Device& device, int edits,
                 unsigned seed) {
  // Steps of 24 on the cached path, of 64 on the fresh one: results must not depend on how a prompt is cut.
  const ModelFacts facts{.digest = model->digest(),
                         .layers = model->shape().layers,
                         .vocabulary = model->shape().vocabulary,
                         .context_tokens = model->shape().context_tokens};
  auto stopping = std::make_unique<test::StoppingBackend>(cpu(model, device, 2));
  test::StoppingBackend& backend = *stopping;
  const auto engine =
      LocalEngine::make(facts, nullptr, std::move(stopping), {.step_tokens_max = 24}).value();
  Fresh fresh(model, device);
  EditScript script({.documents = 3,
                     .text_tokens = 90,
                     .window_tokens = kWindow,
                     .vocabulary = model->shape().vocabulary},
                    seed);
  IdlePrompt idle(*engine, backend, fresh);
  std::map<std::size_t, SequenceId> sequences;
  int reused = 0;
  int evaluated = 0;
  for (int edit = 0; edit < edits; ++edit) {
    INFO("edit " << edit);
    script.step();
    for (int parts = script.below(8); parts > 0; --parts) idle.go_on(script, facts.layers);
    const auto [entry, added] = sequences.try_emplace(script.document());
    if (added) entry->second = engine->open_sequence();
    const SequenceId sequence = entry->second;
    const std::vector<TokenId> tokens = script.prompt();
    Result<PromptCost> cost = engine->prefill(sequence, tokens, {});
    if (!cost) {
      REQUIRE(cost.error().fault == Fault::kWindowFull);
      for (const auto& [document, other] : sequences)
        if (other != sequence) engine->close_sequence(other);
      sequences = {{script.document(), sequence}};
      idle.close();
      cost = engine->prefill(sequence, tokens, {});
    }
    REQUIRE(cost.has_value());
    reused += cost->reused;
    evaluated += cost->evaluated;
    script.offer(generate(*engine, sequence, fresh, tokens));
    REQUIRE(engine->pool().check() == "");
  }
  CHECK(reused > evaluated);
  CHECK(idle.checked > 0);
  CHECK(backend.gone_on > 0);
}

// Where each edit is slow there are fewer: with all of them AddressSanitizer takes 58 s of processor time, with these 23.
#ifdef EFIMD_SANITIZED
constexpr int kScalarEdits = 8, kEdits = 60;
#else
constexpr int kScalarEdits = 20, kEdits = 200;
#endif

}  // namespace

TEST_CASE(
    "cached and fresh evaluation agree bit for bit on the CPU, and so does what is generated "
    "(KV-5)") {
  const test::TempDir folder;
  const auto [architecture, type] =
      GENERATE(table<std::string, TensorType>({{"llama", TensorType::kF32},
                                               {"llama", TensorType::kF16},
                                               {"llama", TensorType::kBF16},
                                               {"qwen2", TensorType::kF16},
                                               {"qwen2", TensorType::kQ8_0},
                                               {"qwen3moe", TensorType::kQ8_0},
                                               {"starcoder2", TensorType::kF16},
                                               {"gemma", TensorType::kQ8_0},
                                               {"granite", TensorType::kF16}}));
  test::TinyModel shape;
  shape.architecture = architecture;
  shape.type = type;
  shape.window = 48;  // of starcoder2; the others have none
  const auto model = Model::open(test::write_tiny_model(shape, folder.path())).value();
  for (const Isa isa : {Isa::kScalar, best_isa()})
    for (const KvType kv_type : {KvType::kF16, KvType::kQ8}) {
      INFO(architecture << " " << tensor_type_name(type) << " on " << isa_name(isa) << ", KV "
                        << kv_type_name(kv_type));
      run_session(model, {isa, kv_type}, isa == Isa::kScalar ? kScalarEdits : kEdits, 21);
    }
}
