// Products of many tokens with AMX (tiles of int8); all else is the table of AVX-512 with BF16, which
// every processor with AMX has. The bits are the same. Compiled with flags of its own: see kernels.h
// on what may be included here.
#include "engine/backend/cpu/amx/tiles.h"
#include "engine/backend/cpu/avx512/vector_avx512.h"
#include "engine/backend/cpu/avx512/words_avx512.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/slab_product.h"
// It works on the Tiles, the Vector, the Words and the product of slabs above.
#include "engine/backend/cpu/amx/tile_matmul.h"

namespace efimd::engine::cpu {
namespace {

/// With fewer tokens panels are multiplied as they are. Whole steps of 16 tokens by tiles took 1.1
/// (Q8_0) and 1.0 (Q4_0) times as long, products of 32 tokens 0.8 times.
constexpr int kTilesFromTokens = 17;

/// Whole panels by tiles if there are tokens enough, all else as before.
void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  const CpuKernels& other = avx512bf16_kernels();
  const RowRange panels = in.tokens < kTilesFromTokens ? RowRange{0, 0} : panels_of(weights, rows);
  if (panels.first == panels.last) return other.matmul(weights, rows, in, out);
  tile_matmul(weights, panels, in, out);
  if (rows.first < panels.first) other.matmul(weights, {rows.first, panels.first}, in, out);
  if (panels.last < rows.last) other.matmul(weights, {panels.last, rows.last}, in, out);
}

CpuKernels with_matmul(CpuKernels kernels) {
  kernels.matmul = matmul;
  return kernels;
}

}  // namespace

const CpuKernels& amx_kernels() {
  static const CpuKernels kKernels = with_matmul(avx512bf16_kernels());
  return kKernels;
}

}  // namespace efimd::engine::cpu
