// The kernels with AVX-512 (F, BW, VL, DQ) and VNNI. Compiled with flags of its own: see kernels.h
// on what may be included here.
#include "engine/backend/cpu/avx512/vector_avx512.h"
#include "engine/backend/cpu/avx512/words_avx512.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/slab_product.h"
// The simd files work on the Vector, the Words and the product of slabs above.
#include "engine/backend/cpu/simd/simd_attention_kv8.h"
#include "engine/backend/cpu/simd/simd_quantized.h"

namespace efimd::engine::cpu {

namespace {

/// One group of quantize(), all but its scale.
inline void quantize_group(const float* x, int group, float inverse, const QuantizedRow& out) {
  const __m512 factor = _mm512_set1_ps(inverse);
  const __m128i low =
      _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), factor)));
  const __m128i high =
      _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), factor)));
  const __m256i quants = _mm256_set_m128i(high, low);
  _mm256_storeu_si256(
      reinterpret_cast<__m256i*>(out.quants + static_cast<std::ptrdiff_t>(group) * kGroup), quants);
  // Products with 1 add up four quants to a word; then the four words of each half.
  __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), quants);
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0x4E));
  sums = _mm256_add_epi32(sums, _mm256_shuffle_epi32(sums, 0xB1));
  const int first = _mm_cvtsi128_si32(_mm256_castsi256_si128(sums));
  const int second = _mm_cvtsi128_si32(_mm256_extracti128_si256(sums, 1));
  out.half_offsets[2 * group] = -128 * first;
  out.half_offsets[2 * group + 1] = -128 * second;
  out.offsets[group] = -128 * (first + second);
  out.totals[group] = static_cast<float>(first + second) * out.scales[group];
}

/// Sixteen groups at a time, so that their divisions are two.
void quantize(const float* x, int width, const QuantizedRow& out) {
  const int groups = width / kGroup;
  for (int from = 0; from < groups; from += kLanes) {
    const int count = groups - from < kLanes ? groups - from : kLanes;
    alignas(64) float largest[kLanes] = {};
    alignas(64) float inverse[kLanes];
    for (int i = 0; i < count; ++i)
      largest[i] = largest_of_group(x + static_cast<std::ptrdiff_t>(from + i) * kGroup);
    const __m512 all = _mm512_load_ps(largest);
    const __mmask16 used = _mm512_cmp_ps_mask(all, _mm512_set1_ps(kQuantizeFloor), _CMP_NLT_UQ);
    const __m512 top = _mm512_set1_ps(127.0F);
    _mm512_store_ps(inverse, _mm512_maskz_div_ps(used, top, all));
    store_up_to(out.scales + from, _mm512_maskz_div_ps(used, all, top), count);
    for (int i = 0; i < count; ++i)
      quantize_group(x + static_cast<std::ptrdiff_t>(from + i) * kGroup, from + i, inverse[i], out);
  }
}

}  // namespace

const CpuKernels& avx512_kernels() {
  static constexpr CpuKernels kKernels{matmul,     attention, rms_norm, quantize,     silu_mul,
                                       layer_norm, gelu_mul,  to_half,  attention_kv8};
  return kKernels;
}

}  // namespace efimd::engine::cpu
