// The kernels with AVX2, FMA and F16C. Compiled with flags of its own: see kernels.h on what may be
// included here.
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/vector_avx2.h"
// The simd files work on the Vector above.
#include "engine/backend/cpu/simd_attention.h"
#include "engine/backend/cpu/simd_dot.h"
#include "engine/backend/cpu/simd_q8_0.h"
#include "engine/backend/cpu/simd_rows.h"

namespace efimd::engine::cpu {

namespace {

// vpmaddubsw multiplies unsigned by signed bytes and adds pairs, saturating: |w| * (x with w's
// sign) is at most 2 * 128 * 127 = 32512, so nothing saturates (x is never -128). One such sum fits
// 16 bits, two do not.

/// 16 bytes each of two rows, four rows apart.
inline __m256i two_rows(const unsigned char* at, std::size_t stride) {
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 4 * stride));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

inline void store_quad(unsigned char* at, __m256i quad) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), quad);
}

inline __m256i broadcast_quad(const std::int8_t* at) {
  int quad;
  __builtin_memcpy(&quad, at, 4);
  return _mm256_set1_epi32(quad);
}

/// sums[i][row] += slab * x[i] for N tokens.
template <int N>
void multiply_slab(const Slab& slab, int groups, SlabInputs in, float (*sums)[kRows]) {
  const __m256i ones = _mm256_set1_epi16(1);
  __m256 acc[N];
  for (int i = 0; i < N; ++i) acc[i] = _mm256_load_ps(sums[i]);
  for (int group = 0; group < groups; ++group, in.x += kGroup, ++in.scales) {
    __m256i products[N];
    for (int i = 0; i < N; ++i) products[i] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < kQuads; ++j) {
      const __m256i w = _mm256_load_si256(reinterpret_cast<const __m256i*>(slab.quads[group][j]));
      const __m256i magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        const __m256i signed_x = _mm256_sign_epi8(
            broadcast_quad(in.x + static_cast<std::size_t>(i) * in.stride + 4 * j), w);
        const __m256i pairs = _mm256_maddubs_epi16(magnitude, signed_x);
        products[i] = _mm256_add_epi32(products[i], _mm256_madd_epi16(pairs, ones));
      }
    }
    const __m256 w_scales = _mm256_load_ps(slab.scales[group]);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const float x_scale = in.scales[static_cast<std::size_t>(i) * in.group_stride];
      const __m256 scale = _mm256_mul_ps(w_scales, _mm256_set1_ps(x_scale));
      acc[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(products[i]), scale, acc[i]);
    }
  }
  for (int i = 0; i < N; ++i) _mm256_store_ps(sums[i], acc[i]);
}

struct Tier {
  using MultiplySlab = void (*)(const Slab&, int groups, SlabInputs, float (*sums)[kRows]);
  static constexpr int kTokensAtOnce = 4;
  static constexpr MultiplySlab kMultiplySlab[kTokensAtOnce] = {multiply_slab<1>, multiply_slab<2>,
                                                                multiply_slab<3>, multiply_slab<4>};

  /// 16 weights of 8 rows to four quads: a 4 x 4 transposition of 32-bit words inside each 128-bit
  /// lane.
  static void pack_half_group(const unsigned char* at, std::size_t stride,
                              unsigned char (*quads)[32]) {
    const __m256i a = two_rows(at, stride);
    const __m256i b = two_rows(at + stride, stride);
    const __m256i c = two_rows(at + 2 * stride, stride);
    const __m256i d = two_rows(at + 3 * stride, stride);
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b);
    const __m256i ab_high = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi32(c, d);
    const __m256i cd_high = _mm256_unpackhi_epi32(c, d);
    store_quad(quads[0], _mm256_unpacklo_epi64(ab_low, cd_low));
    store_quad(quads[1], _mm256_unpackhi_epi64(ab_low, cd_low));
    store_quad(quads[2], _mm256_unpacklo_epi64(ab_high, cd_high));
    store_quad(quads[3], _mm256_unpackhi_epi64(ab_high, cd_high));
  }

  static void store_sums(const float* sums, int rows, const Outputs& out, int t, int n) {
    for (int r = 0; r < rows; ++r) store_product(out, t, n + r, sums[r]);
  }
};

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
    const __m256i sums = _mm256_add_epi32(_mm256_add_epi32(levels[0], levels[1]),
                                          _mm256_add_epi32(levels[2], levels[3]));
    // The packs work within 128-bit lanes and leave the 32-bit words in the order 0 4 1 5 2 6 3 7
    // (of 4 bytes).
    const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(levels[0], levels[1]),
                                             _mm256_packs_epi32(levels[2], levels[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(quants),
                        _mm256_permutevar8x32_epi32(bytes, order));
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1));
    out.sums[group] = _mm_cvtsi128_si32(sum);
    out.totals[group] = static_cast<float>(out.sums[group]) * out.scales[group];
  }
}

}  // namespace

const CpuKernels& avx2_kernels() {
  static constexpr CpuKernels kKernels{matmul<Tier>, attention,  rms_norm, quantize,
                                       silu_mul,     layer_norm, gelu_mul, to_half};
  return kKernels;
}

}  // namespace efimd::engine::cpu
