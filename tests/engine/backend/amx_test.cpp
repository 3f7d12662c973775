// Products by AMX have the bits of products without it. What the processor lacks is emulated.
#include <limits>
#include <string>

#include "engine/backend/cpu/kernels/isa.h"
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

void check_all(int rows, int wanted_cols, const std::vector<int>& tokens, unsigned seed) {
  std::mt19937 random(seed);
  std::deque<std::vector<std::byte>> storage;
  for (const TensorType type : kWeightTypes) {
    if (!is_quantized(type)) continue;
    const int cols = cols_of(type, wanted_cols);
    const PanelMatrix matrix(random_tensor(storage, type, rows, cols, 1, random));
    for (const int count : tokens) {
      const InputRows inputs(count, cols, random);
      const std::vector<float> expected =
          product_of(kernels_of(Isa::kAvx512).matmul, matrix.mapped, inputs);
      for (const auto& [name, matmul] : products_by_tiles()) {
        INFO(name << ", " << tensor_type_name(type) << ", N " << rows << ", K " << cols << ", T "
                  << count);
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
  // One group, a whole slab, two slabs and a part of one; passes of 128 tokens.
  for (const int rows : {16, 48, 64, 80}) check_all(rows, 32, {16, 130}, 2);
  for (const int cols : {1024, 2144}) check_all(80, cols, {13, 128, 129}, 3);
  CHECK(refused_tile_instructions() == 0);
}

}  // namespace efimd::test
