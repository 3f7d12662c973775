#pragma once

// Quantization of inputs with AVX2, for the two tables that have 256 bits.
#include <immintrin.h>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/simd_rows.h"

namespace efimd::engine::cpu {
namespace {

inline int sum_of(__m256i words) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
  return _mm_cvtsi128_si32(sum);
}

void quantize(const float* x, int width, const QuantizedRow& out) {
  for (int group = 0; group < width / kGroup; ++group, x += kGroup) {
    std::int8_t* quants = out.quants + static_cast<std::ptrdiff_t>(group) * kGroup;
    const float largest = largest_of_group(x);
    const bool zero = largest < kQuantizeFloor;
    const __m256 inverse = _mm256_set1_ps(zero ? 0.0F : 127.0F / largest);
    out.scales[group] = zero ? 0.0F : largest / 127.0F;
    __m256i levels[4];
    for (int j = 0; j < 4; ++j)
      levels[j] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * j), inverse));
    // The packs work within 128-bit lanes and leave the 32-bit words in the order 0 4 1 5 2 6 3 7
    // (of 4 bytes).
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(levels[0], levels[1]),
                                             _mm256_packs_epi32(levels[2], levels[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants),
                        _mm256_permutevar8x32_epi32(bytes, order));
    const int first = sum_of(_mm256_add_epi32(levels[0], levels[1]));
    const int second = sum_of(_mm256_add_epi32(levels[2], levels[3]));
    out.half_offsets[2 * group] = -128 * first;
    out.half_offsets[2 * group + 1] = -128 * second;
    out.offsets[group] = -128 * (first + second);
    out.totals[group] = static_cast<float>(first + second) * out.scales[group];
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
