// The kernels with NEON, dotprod and its products of small matrices of bytes (i8mm). Compiled with flags of its own:
// see kernels.h on what may be included here.
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/neon/slab_product_i8mm.h"
#include "engine/backend/cpu/neon/vector_neon.h"
#include "engine/backend/cpu/neon/words_neon.h"
// The other files work on the Vector, the Words and the product of slabs above.
#include "engine/backend/cpu/neon/quantize_neon.h"
#include "engine/backend/cpu/simd/simd_attention_kv8.h"
#include "engine/backend/cpu/simd/simd_quantized.h"

namespace efimd::engine::cpu {

const CpuKernels& neoni8mm_kernels() {
  static constexpr CpuKernels kKernels{matmul,     attention, rms_norm, quantize,     silu_mul,
                                       layer_norm, gelu_mul,  to_half,  attention_kv8};
  return kKernels;
}

}  // namespace efimd::engine::cpu
