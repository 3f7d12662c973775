// What architectures differ in, each alone and as the real ones combine them: agreement with f64 and
// batch invariance.
#include "tests/engine/backend/varieties.h"

#include <array>
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

/// Whether inputs are rounded for products with weights of this type.
bool rounds_inputs(Isa isa, TensorType type) {
  return is_quantized(type) ||
         (type == TensorType::kBF16 && (isa == Isa::kAvx512Bf16 || isa == Isa::kAmx));
}

/// As a share of the logits' own size: of KV in f16, and of inputs in 8 bits or in bf16.
double tolerance_of(Isa isa, TensorType type) {
  if (is_quantized(type)) return 0.08;
  return rounds_inputs(isa, type) ? 0.02 : 0.005;
}

std::vector<Expected> expected_logits(const MemoryModel& model,
                                      const std::vector<engine::TokenId>& tokens) {
  std::vector<Expected> expected;
  double squares = 0;
  for (const auto& row : reference_forward(model.shape, model.weights, tokens))
    for (const double value : row) {
      squares += value * value;
      expected.push_back({value, 0});
    }
  const double size = std::sqrt(squares / static_cast<double>(expected.size()));
  for (Expected& logit : expected) logit.tolerance = size;
  return expected;
}

std::vector<Expected> within(double tolerance, std::vector<Expected> expected) {
  for (Expected& logit : expected) logit.tolerance *= tolerance;
  return expected;
}

void check_against_f64(Variety variety, TensorType type) {
  variety.options.type = type;
  variety.options.seed = 3;
  const MemoryModel model(variety.shape, variety.options);
  const auto tokens = random_tokens(70, model.shape.vocabulary, 1);
  const auto expected = expected_logits(model, tokens);
  for (const Isa isa : isas_here()) {
    // With rounded inputs the router's near ties may fall to another expert than in f64.
    if (variety.shape.experts > 0 && rounds_inputs(isa, type)) continue;
    INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", " << variety.name);
    const auto backend = device(model, isa, 2);
    check_close(evaluate(*backend, model, tokens, {64}, pages_from(5, 7)),
                within(tolerance_of(isa, type), expected));
  }
}

}  // namespace

TEST_CASE("a tiny model's logits agree with f64 for every architecture", "[one-thread]") {
  for (const TensorType type :
       {TensorType::kF32, TensorType::kF16, TensorType::kBF16, TensorType::kQ8_0}) {
    for (const Variety& variety : varieties()) check_against_f64(variety, type);
  }
}

TEST_CASE("a tiny model's logits agree with f64 for every weight type", "[one-thread]") {
  for (const TensorType type : kWeightTypes) {
    const bool rows_fit = tiny_shape().width % engine::tensor_block(type).elements == 0;
    check_against_f64(rows_fit ? varieties()[1] : wide(varieties()[1]), type);
  }
}

TEST_CASE("every architecture's logits are the same bit for bit however a prompt is cut") {
  constexpr std::array kTypes = {TensorType::kQ8_0, TensorType::kF16};
  for (const TensorType type : types_watched(kTypes)) {
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
  Variety variety = varieties().back();
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
    Variety variety = varieties().back();
    variety.shape.experts_used = used;
    variety.options.seed = 9;
    const MemoryModel model(variety.shape, variety.options);
    // The same token 40 times: with equal rows the router has one choice.
    std::vector<engine::TokenId> tokens(40, 7);
    const auto expected =
        within(tolerance_of(Isa::kScalar, TensorType::kF32), expected_logits(model, tokens));
    for (const Isa isa : isas_here()) {
      INFO(isa_name(isa) << ", " << used << " used");
      check_close(evaluate(*device(model, isa, 2), model, tokens, {40}, pages_from(0, 1)),
                  expected);
    }
  }
}

}  // namespace efimd::test
