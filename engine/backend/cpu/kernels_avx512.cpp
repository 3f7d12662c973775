// The kernels with AVX-512 (F, BW, VL, DQ) and VNNI. Compiled with flags of its own: see kernels.h
// on what may be included here.
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/vector_avx512.h"
#include "engine/backend/cpu/words_avx512.h"
// The simd files work on the Vector and the Words above.
#include "engine/backend/cpu/simd_attention.h"
#include "engine/backend/cpu/simd_quantized.h"

namespace efimd::engine::cpu {

namespace {

void quantize(const float* x, int width, const QuantizedRow& out) {
  for (int group = 0; group < width / kGroup; ++group, x += kGroup) {
    std::int8_t* quants = out.quants + static_cast<std::ptrdiff_t>(group) * kGroup;
    const float largest = largest_of_group(x);
    const bool zero = largest < kQuantizeFloor;
    const __m512 inverse = _mm512_set1_ps(zero ? 0.0F : 127.0F / largest);
    out.scales[group] = zero ? 0.0F : largest / 127.0F;
    const __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
    const __m512i high = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(quants), _mm512_cvtsepi32_epi8(low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(quants + 16), _mm512_cvtsepi32_epi8(high));
    const int first = _mm512_reduce_add_epi32(low);
    const int second = _mm512_reduce_add_epi32(high);
    out.half_offsets[2 * group] = -128 * first;
    out.half_offsets[2 * group + 1] = -128 * second;
    out.offsets[group] = -128 * (first + second);
    out.totals[group] = static_cast<float>(first + second) * out.scales[group];
  }
}

}  // namespace

const CpuKernels& avx512_kernels() {
  static constexpr CpuKernels kKernels{matmul,   attention,  rms_norm, quantize,
                                       silu_mul, layer_norm, gelu_mul, to_half};
  return kKernels;
}

}  // namespace efimd::engine::cpu
