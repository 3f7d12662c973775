// What architectures differ in, each alone and as the real ones combine them: agreement with f64 and
// batch invariance.
#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/memory_model.h"
#include "tests/engine/backend/reference_forward.h"

namespace efimd::test {
namespace {

using engine::Isa;
using engine::TensorType;

struct Variety {
  std::string name;
  engine::ModelShape shape = tiny_shape();
  MemoryModel::Options options = {};
};

Variety llama3() {
  Variety llama{"llama, RoPE factors, all biases"};
  llama.options.all_biases = true;
  llama.options.rope_factors = true;
  llama.shape.rope_scale = 0.5F;
  return llama;
}

Variety qwen3() {
  Variety qwen{"qwen3"};
  qwen.shape.rope_pairs = engine::RopePairs::kHalves;
  qwen.options.head_norms = true;
  return qwen;
}

Variety starcoder2() {
  Variety coder{"starcoder2"};
  coder.shape.rope_pairs = engine::RopePairs::kHalves;
  coder.shape.norm = engine::Norm::kLayer;
  coder.shape.activation = engine::Activation::kGelu;
  coder.shape.attention_window = 37;
  coder.options.gated = false;
  coder.options.all_biases = true;
  return coder;
}

Variety gemma() {
  Variety gemma{"gemma"};
  gemma.shape.rope_pairs = engine::RopePairs::kHalves;
  gemma.shape.activation = engine::Activation::kGelu;
  gemma.shape.kv_heads = 1;
  gemma.shape.embedding_scale = std::sqrt(96.0F);
  return gemma;
}

Variety granite() {
  Variety granite{"granite"};
  granite.shape.embedding_scale = 12;
  granite.shape.attention_scale = 0.09F;
  granite.shape.residual_scale = 0.22F;
  granite.shape.logit_scale = 1 / 8.0F;
  granite.options.all_biases = true;
  return granite;
}

Variety qwen3moe() {
  Variety qwen = qwen3();
  qwen.name = "qwen3moe";
  qwen.shape.experts = 6;
  qwen.shape.experts_used = 3;
  qwen.shape.feed_forward = 64;
  return qwen;
}

Variety qwen2() {
  Variety qwen{"qwen2"};
  qwen.shape.rope_pairs = engine::RopePairs::kHalves;
  qwen.options.biases = true;
  return qwen;
}

std::vector<Variety> varieties() {
  return {{"llama"}, qwen2(), llama3(), qwen3(), starcoder2(), gemma(), granite(), qwen3moe()};
}

/// With rows that K types can have.
Variety wide(Variety variety) {
  variety.shape.width = 256;
  variety.shape.heads = 8;
  variety.shape.feed_forward = 512;
  return variety;
}

std::vector<Expected> expected_logits(const MemoryModel& model,
                                      const std::vector<engine::TokenId>& tokens,
                                      double tolerance) {
  std::vector<Expected> expected;
  double squares = 0;
  for (const auto& row : reference_forward(model.shape, model.weights, tokens))
    for (const double value : row) {
      squares += value * value;
      expected.push_back({value, 0});
    }
  // KV in f16 and, for quantized weights, inputs in 8 bits: errors are a share of the logits' own size.
  const double size = std::sqrt(squares / static_cast<double>(expected.size()));
  for (Expected& logit : expected) logit.tolerance = tolerance * size;
  return expected;
}

void check_against_f64(Variety variety, TensorType type) {
  variety.options.type = type;
  variety.options.seed = 3;
  const MemoryModel model(variety.shape, variety.options);
  const auto tokens = random_tokens(70, model.shape.vocabulary, 1);
  const auto expected = expected_logits(model, tokens, is_quantized(type) ? 0.08 : 0.005);
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", " << variety.name);
    const auto backend = device(model, isa, 2);
    check_close(evaluate(*backend, model, tokens, {64}, pages_from(5, 7)), expected);
  }
}

}  // namespace

TEST_CASE("a tiny model's logits agree with f64 for every architecture") {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0}) {
    for (const Variety& variety : varieties()) {
      // In 8 bits the router's near ties may fall to another expert than in f64.
      if (variety.shape.experts > 0 && type == TensorType::kQ8_0) continue;
      check_against_f64(variety, type);
    }
  }
}

TEST_CASE("a tiny model's logits agree with f64 for every weight type") {
  for (const TensorType type : kWeightTypes) {
    const bool rows_fit = tiny_shape().width % engine::tensor_block(type).elements == 0;
    check_against_f64(rows_fit ? qwen2() : wide(qwen2()), type);
  }
}

TEST_CASE("every architecture's logits are the same bit for bit however a prompt is cut") {
  for (const TensorType type : {TensorType::kF16, TensorType::kQ8_0}) {
    for (Variety& variety : varieties()) {
      variety.options.type = type;
      const MemoryModel model(variety.shape, variety.options);
      const auto tokens = random_tokens(130, model.shape.vocabulary, 2);
      for (const Isa isa : isas_here()) {
        const auto backend = device(model, isa, 2);
        const auto whole = evaluate(*backend, model, tokens, {64}, pages_from(0, 1));
        for (const std::vector<int>& steps : {std::vector{1}, {17, 1, 4, 33}}) {
          INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", " << variety.name
                             << ", steps of " << steps[0] << " ...");
          check_same_bits(evaluate(*backend, model, tokens, steps, pages_from(20, 3)), whole);
        }
      }
    }
  }
}

TEST_CASE("rows of another sequence in the step change nothing, though they share experts") {
  Variety variety = qwen3moe();
  variety.options.type = TensorType::kQ8_0;
  const MemoryModel model(variety.shape, variety.options);
  const auto vocabulary = static_cast<std::size_t>(model.shape.vocabulary);
  const auto first = random_tokens(9, model.shape.vocabulary, 4);
  const auto second = random_tokens(21, model.shape.vocabulary, 5);
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa));
    const auto backend = device(model, isa, 2);
    const auto alone = evaluate(*backend, model, first, {64}, pages_from(0, 1));
    std::vector<engine::TokenId> tokens = second;
    tokens.insert(tokens.end(), first.begin(), first.end());
    const auto first_pages = pages_from(20, 1);
    const auto second_pages = pages_from(10, 1);
    const engine::StepSequence sequences[] = {{0, 21, 0, second_pages}, {21, 9, 0, first_pages}};
    const int rows[] = {29};
    forward_layers(*backend, {tokens, sequences, rows}, model.shape.layers);
    check_same_bits(*backend->logits(), std::span(alone).last(vocabulary));
  }
}

TEST_CASE("a step whose rows all go to one expert, and one whose rows go to all, agree with f64") {
  for (const int used : {1, 6}) {
    Variety variety = qwen3moe();
    variety.shape.experts_used = used;
    variety.options.seed = 9;
    const MemoryModel model(variety.shape, variety.options);
    // The same token 40 times: with equal rows the router has one choice.
    std::vector<engine::TokenId> tokens(40, 7);
    const auto expected = expected_logits(model, tokens, 0.005);
    for (const Isa isa : isas_here()) {
      INFO(isa_name(isa) << ", " << used << " used");
      check_close(evaluate(*device(model, isa, 2), model, tokens, {40}, pages_from(0, 1)),
                  expected);
    }
  }
}

}  // namespace efimd::test
