// Products by AMX have the bits of products without it. What the processor lacks is emulated.
#include <limits>
#include <string>

#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/multiplier.h"
#include "engine/backend/cpu/worker_pool.h"
#include "tests/engine/backend/check_close.h"
#include "tests/engine/backend/emulated_amx.h"
#include "tests/engine/backend/input_rows.h"
#include "tests/engine/backend/memory_model.h"
#include "tests/engine/backend/panel_matrix.h"

namespace efimd::test {
namespace {

using namespace engine::cpu;
using engine::Isa;
using engine::TensorType;

using Matmul = void (*)(const Weights&, RowRange, const Inputs&, const Outputs&);

std::vector<float> product_of(Matmul matmul, const Weights& weights, const InputRows& inputs) {
  std::vector<float> out(static_cast<std::size_t>(inputs.tokens * weights.rows),
                         std::numeric_limits<float>::quiet_NaN());
  matmul(weights, {0, weights.rows}, inputs.inputs(),
         {out.data(), static_cast<std::size_t>(weights.rows), nullptr, Store::kSet});
  return out;
}

/// Tiles are emulated on AVX-512.
bool avx512_is_here() {
  if (!runs_here(Isa::kAvx512)) WARN("no AVX-512 here: products by tiles are not tried");
  return runs_here(Isa::kAvx512);
}

/// What reads panels by tiles here, named.
std::vector<std::pair<std::string, Matmul>> products_by_tiles() {
  std::vector<std::pair<std::string, Matmul>> products{{"emulated", multiply_by_emulated_tiles}};
  if (runs_here(Isa::kAmx)) products.emplace_back("AMX", kernels_of(Isa::kAmx).matmul);
  return products;
}

/// `first`: the place of the first token in its block of tiles.
void check_all(int rows, int wanted_cols, const std::vector<int>& tokens, unsigned seed,
               int first = 0) {
  std::mt19937 random(seed);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    if (!is_quantized(type)) continue;
    const int cols = cols_of(type, wanted_cols);
    const PanelMatrix matrix(random_tensor(storage, type, rows, cols, 1, random));
    for (const int count : tokens) {
      InputRows inputs(count, cols, random);
      inputs.lay_out_tiles(first);
      const std::vector<float> expected =
          product_of(kernels_of(Isa::kAvx512).matmul, matrix.mapped, inputs);
      for (const auto& [name, matmul] : products_by_tiles()) {
        INFO(name << ", " << tensor_type_name(type) << ", N " << rows << ", K " << cols << ", T "
                  << count << " from " << first);
        check_same_bits(product_of(matmul, matrix.both, inputs), expected);
      }
    }
  }
}

}  // namespace

TEST_CASE("products by tiles have the same bits at every number of tokens", "[one-thread]") {
  if (!avx512_is_here()) return;
  std::vector<int> tokens;
  for (int count = 1; count <= 35; ++count) tokens.push_back(count);
  check_all(16, 96, tokens, 1);
  CHECK(refused_tile_instructions() == 0);
}

TEST_CASE("products by tiles have the same bits at every number of panels and columns",
          "[one-thread]") {
  if (!avx512_is_here()) return;
  // One group, some slabs, and a part of one; passes of 256 tokens.
  for (const int rows : {16, 48, 64, 80}) check_all(rows, 32, {16, 130}, 2);
  for (const int cols : {1024, 2144}) check_all(48, cols, {13, 128, 129}, 3);
  check_all(48, 288, {256, 257}, 4);
  CHECK(refused_tile_instructions() == 0);
}

TEST_CASE("products by tiles begin at any row of a block", "[one-thread]") {
  if (!avx512_is_here()) return;
  for (const int first : {1, 7, 15}) check_all(32, 288, {1, 9, 16, 33, 60}, 5, first);
  check_all(32, 32, {256}, 6, 3);
  CHECK(refused_tile_instructions() == 0);
}

TEST_CASE("a multiplier lays inputs out for tiles, for all rows or for some", "[one-thread]") {
  if (!avx512_is_here()) return;
  constexpr int kTokens = 50;
  std::mt19937 random(7);
  std::deque<std::vector<std::byte>> storage;
  const PanelMatrix matrix(random_tensor(storage, TensorType::kQ4_K, 72, 512, 1, random));
  const InputRows inputs(kTokens, 512, random);
  const std::vector<float> no_bias;
  WorkerPool pool(1);  // the emulated tiles are one set for all threads
  const auto product = [&](const CpuKernels& kernels, const Weights& weights, RowRange tokens) {
    Multiplier multiplier(kernels, pool);
    REQUIRE(multiplier.reserve(kTokens, 512));
    const auto all = static_cast<std::size_t>(kTokens * weights.rows);
    std::vector<float> out(all, 0.0F);
    float* const at = out.data() + static_cast<std::size_t>(tokens.first * weights.rows);
    const Product wanted{&weights, tokens,     at, static_cast<std::size_t>(weights.rows),
                         &no_bias, Store::kSet};
    for (int row = 0; row < kTokens; ++row)
      multiplier.quantize_row({&wanted, 1}, inputs.values.data(), 512, row);
    multiplier.multiply({&wanted, 1}, inputs.values.data());
    return out;
  };
  // Rows after the panels are read in the file's order; without panels all are.
  for (const RowRange tokens : {RowRange{0, 50}, {0, 13}, {3, 30}, {17, 50}, {40, 50}}) {
    INFO("tokens " << tokens.first << " to " << tokens.last);
    for (const Weights* weights : {&matrix.mapped, &matrix.both}) {
      const int before = multiplied_tiles();
      check_same_bits(product(emulated_amx_kernels(), *weights, tokens),
                      product(kernels_of(Isa::kAvx512), *weights, tokens));
      const bool many = tokens.last - tokens.first >= emulated_amx_kernels().tiles_from;
      CHECK((multiplied_tiles() > before) == (many && weights->panels != nullptr));
    }
  }
  CHECK(refused_tile_instructions() == 0);
}

}  // namespace efimd::test
