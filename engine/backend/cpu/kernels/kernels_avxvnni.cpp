// The kernels with AVX2, FMA, F16C and AVX-VNNI. Compiled with flags of its own: see kernels.h on
// what may be included here; words_avx2.h looks at __AVXVNNI__.
#include "engine/backend/cpu/avx2/slab_product_avx2.h"
#include "engine/backend/cpu/avx2/vector_avx2.h"
#include "engine/backend/cpu/avx2/words_avx2.h"
#include "engine/backend/cpu/kernels/kernels.h"
// The simd files work on the Vector, the Words and the product of slabs above.
#include "engine/backend/cpu/avx2/quantize_avx2.h"
#include "engine/backend/cpu/simd/simd_attention_kv8.h"
#include "engine/backend/cpu/simd/simd_quantized.h"

namespace efimd::engine::cpu {

const CpuKernels& avxvnni_kernels() {
  static constexpr CpuKernels kKernels{matmul,     attention, rms_norm, quantize,     silu_mul,
                                       layer_norm, gelu_mul,  to_half,  attention_kv8};
  return kKernels;
}

}  // namespace efimd::engine::cpu
