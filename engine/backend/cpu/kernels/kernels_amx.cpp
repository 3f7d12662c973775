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

const CpuKernels& amx_kernels() {
  static const CpuKernels kKernels = TileKernels<avx512bf16_kernels>::table();
  return kKernels;
}

}  // namespace efimd::engine::cpu
