#include "engine/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <limits>
#include <string>

#include "engine/backend/cpu/kernels/isa.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/evaluate.h"
#include "tests/engine/backend/memory_model.h"

// Under a sanitizer a failed allocation returns null too, instead of ending the test.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace efimd::test {
namespace {

using engine::CpuOptions;
using engine::Isa;
using engine::kPageTokens;
using engine::PageIndex;
using engine::TensorType;
using engine::TokenId;

/// tiny_shape() with rows that K types can have.
engine::ModelShape wide_shape() {
  engine::ModelShape shape = tiny_shape();
  shape.width = 256;
  shape.heads = 8;
  shape.feed_forward = 512;
  return shape;
}

bool fits(const engine::ModelShape& shape, TensorType type) {
  return shape.width % engine::tensor_block(type).elements == 0;
}

}  // namespace

TEST_CASE("logits are the same bit for bit however a prompt is cut into steps") {
  constexpr std::array kTypes = {TensorType::kQ8_0, TensorType::kF16, TensorType::kQ4_K};
  for (const TensorType type : types_watched(kTypes)) {
    const MemoryModel model(fits(tiny_shape(), type) ? tiny_shape() : wide_shape(),
                            {type, true, 4});
    const std::vector<TokenId> tokens = random_tokens(150, model.shape.vocabulary, 2);
    for (const Isa isa : isas_here()) {
      const auto backend = device(model, isa, 2);
      const std::vector<float> expected = evaluate(*backend, model, tokens, {64}, pages_from(0, 1));
      for (const std::vector<int>& steps : {std::vector{1}, {5}, {17, 1, 4, 33}}) {
        INFO(isa_name(isa) << ", " << tensor_type_name(type) << ", steps of " << steps[0]
                           << " ...");
        check_same_bits(evaluate(*backend, model, tokens, steps, pages_from(20, 3)), expected);
      }
    }
  }
}

TEST_CASE("logits are the same bit for bit with any number of threads") {
  const MemoryModel model(tiny_shape(), {TensorType::kQ8_0, true, 5});
  const std::vector<TokenId> tokens = random_tokens(90, model.shape.vocabulary, 3);
  for (const Isa isa : isas_here()) {
    const std::vector<float> expected =
        evaluate(*device(model, isa, 1), model, tokens, {40, 1}, pages_from(0, 1));
    for (const int threads : {2, 4}) {
      INFO(isa_name(isa) << ", " << threads << " threads");
      check_same_bits(
          evaluate(*device(model, isa, threads), model, tokens, {40, 1}, pages_from(0, 1)),
          expected);
    }
  }
}

TEST_CASE("sequences that share a step do not touch each other") {
  const MemoryModel model(tiny_shape(), {TensorType::kQ8_0, true, 6});
  const auto vocabulary = static_cast<std::size_t>(model.shape.vocabulary);
  const std::vector<TokenId> first = random_tokens(45, model.shape.vocabulary, 4);
  const std::vector<TokenId> second = random_tokens(38, model.shape.vocabulary, 5);
  for (const Isa isa : isas_here()) {
    INFO(isa_name(isa));
    const auto backend = device(model, isa, 2);
    const std::vector<float> first_alone = evaluate(*backend, model, first, {64}, pages_from(0, 1));
    const std::vector<float> second_alone =
        evaluate(*backend, model, second, {64}, pages_from(40, 1));

    // Both again, on other pages: 40 and 30 tokens, then the rest of both in one step, the second
    // sequence in front.
    const std::vector<PageIndex> first_pages = pages_from(20, 1);
    const std::vector<PageIndex> second_pages = pages_from(10, 1);
    evaluate(*backend, model, {first.begin(), first.begin() + 40}, {40}, first_pages);
    evaluate(*backend, model, {second.begin(), second.begin() + 30}, {30}, second_pages);
    std::vector<TokenId> tokens(second.begin() + 30, second.end());
    tokens.insert(tokens.end(), first.begin() + 40, first.end());
    const engine::StepSequence sequences[] = {{0, 8, 30, second_pages}, {8, 5, 40, first_pages}};
    const int rows[] = {12, 7};  // the last of each, in an order of the caller's
    forward_layers(*backend, {tokens, sequences, rows}, model.shape.layers);
    const std::span<const float> logits = *backend->logits();
    REQUIRE(logits.size() == 2 * vocabulary);
    check_same_bits(logits.subspan(0, vocabulary), std::span(first_alone).last(vocabulary));
    check_same_bits(logits.subspan(vocabulary), std::span(second_alone).last(vocabulary));
  }
}

TEST_CASE("a copied page serves a fork as the original would") {
  const MemoryModel model(tiny_shape(), {TensorType::kF16, false, 7});
  const std::vector<TokenId> tokens = random_tokens(50, model.shape.vocabulary, 6);
  const auto backend = device(model, isas_here().back(), 2);
  const std::vector<float> expected = evaluate(*backend, model, tokens, {64}, pages_from(0, 1));
  // Tokens 0 .. 31 lie in page 0 (shared), 32 .. 41 are copied from page 1 to page 9.
  REQUIRE(backend->copy_page(1, 9, 10));
  const std::vector<PageIndex> fork = {0, 9};
  const engine::StepSequence sequence{0, 8, 42, fork};
  const int rows[] = {7};
  forward_layers(*backend, {std::span(tokens).subspan(42), {&sequence, 1}, rows},
                 model.shape.layers);
  check_same_bits(*backend->logits(),
                  std::span(expected).last(static_cast<std::size_t>(model.shape.vocabulary)));
}

TEST_CASE("a step longer than the kernels' blocks is evaluated whole") {
  const MemoryModel model(tiny_shape(), {TensorType::kQ8_0, false, 8});
  const std::vector<TokenId> tokens = random_tokens(150, model.shape.vocabulary, 7);
  CpuOptions options;
  options.page_count = 64;
  options.step_tokens_max = 150;
  const auto backend = *engine::make_cpu_backend(model.shape, model.weights, options);
  CHECK(backend->step_tokens_max() == 150);
  const std::vector<float> whole = evaluate(*backend, model, tokens, {150}, pages_from(0, 1));
  check_same_bits(evaluate(*backend, model, tokens, {50}, pages_from(0, 1)), whole);
}

TEST_CASE("the device says what it is and what it holds") {
  const MemoryModel model(tiny_shape(), {TensorType::kF32, false, 9});
  const auto backend = device(model, Isa::kScalar, 1);
  CHECK(backend->kind() == "cpu");
  CHECK(backend->name().find("scalar, 1 thread") != std::string::npos);
  CHECK(backend->page_count() == 64);
  CHECK(backend->page_bytes() == kPageTokens * model.shape.kv_bytes_per_token());
  CHECK(backend->resident_bytes() == 0);
  evaluate(*backend, model, random_tokens(40, model.shape.vocabulary, 8), {40}, pages_from(3, 1));
  CHECK(backend->resident_bytes() == 2 * backend->page_bytes());
}

TEST_CASE("a token outside the vocabulary is refused by its number") {
  const MemoryModel model(tiny_shape(), {TensorType::kF32, false, 10});
  const auto backend = device(model, Isa::kScalar, 1);
  const std::vector<PageIndex> pages = {0};
  const engine::StepSequence sequence{0, 2, 0, pages};
  for (const TokenId token : {-1, 100, std::numeric_limits<TokenId>::max()}) {
    const TokenId tokens[] = {5, token};
    const auto begun = backend->begin({tokens, {&sequence, 1}, {}});
    REQUIRE(!begun);
    CHECK(begun.error().fault == Fault::kBadInput);
    CHECK(begun.error().what.find("token " + std::to_string(token)) != std::string::npos);
  }
}

TEST_CASE("what cannot be made is refused with its reason") {
  MemoryModel model(tiny_shape(), {TensorType::kF32, false, 11});
  CpuOptions options;
  options.threads = 1;
  options.page_count = 4;
  SECTION("more pages than there are addresses") {
    engine::ModelShape wide = model.shape;
    wide.layers = 8;
    wide.head_width = 256;  // pages of 512 KiB: a million GiB of them
    const MemoryModel wide_model(wide, {TensorType::kF32, false, 11});
    options.page_count = std::numeric_limits<int>::max();
    const auto made = engine::make_cpu_backend(wide, wide_model.weights, options);
    REQUIRE(!made);
    CHECK(made.error().fault == Fault::kNoMemory);
    CHECK(made.error().what.find("2147483647 pages of 524288 bytes") != std::string::npos);
  }
  SECTION("activations of a step that fit nowhere") {
    options.step_tokens_max = std::numeric_limits<int>::max();
    const auto made = engine::make_cpu_backend(model.shape, model.weights, options);
    REQUIRE(!made);
    CHECK(made.error().fault == Fault::kNoMemory);
    CHECK(made.error().what.find("bytes") != std::string::npos);
  }
  SECTION("no pages") {
    options.page_count = 0;
    CHECK(!engine::make_cpu_backend(model.shape, model.weights, options));
  }
  SECTION("a tensor of another shape") {
    model.weights.layers[1].up.rows = 159;
    const auto made = engine::make_cpu_backend(model.shape, model.weights, options);
    REQUIRE(!made);
    CHECK(made.error().what.find("up has 159 rows of 96") != std::string::npos);
  }
}

TEST_CASE("EFIMD_ISA chooses among the instruction sets that run here") {
  const char* outer = std::getenv("EFIMD_ISA");
  const std::string kept = outer == nullptr ? "" : outer;
  ::unsetenv("EFIMD_ISA");
  const Isa best = engine::best_isa();
  CHECK(best == isas_here().back());
  for (const Isa isa : engine::kIsas) {
    ::setenv("EFIMD_ISA", std::string(isa_name(isa)).c_str(), 1);
    CHECK(engine::best_isa() == (engine::cpu::runs_here(isa) ? isa : best));
  }
  ::setenv("EFIMD_ISA", "sse9", 1);
  CHECK(engine::best_isa() == best);
  if (outer == nullptr)
    ::unsetenv("EFIMD_ISA");
  else
    ::setenv("EFIMD_ISA", kept.c_str(), 1);
}

}  // namespace efimd::test
