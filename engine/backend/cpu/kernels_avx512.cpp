// The kernels with AVX-512 (F, BW, VL, DQ) and VNNI. Compiled with flags of its own: see kernels.h
// on what may be included here.
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/vector_avx512.h"
// The simd files work on the Vector above.
#include "engine/backend/cpu/simd_attention.h"
#include "engine/backend/cpu/simd_dot.h"
#include "engine/backend/cpu/simd_q8_0.h"
#include "engine/backend/cpu/simd_rows.h"

namespace efimd::engine::cpu {

namespace {

// vpdpbusd multiplies unsigned by signed bytes, so a slab holds weights xor 0x80, which is + 128:
// sum((w + 128) * x) = sum(w * x) + 128 * sum(x), and sums start at -128 * sum(x).

/// 16 bytes each of rows i, 4 + i, 8 + i, 12 + i.
inline __m512i four_rows(const unsigned char* at, std::size_t stride) {
  const auto row = [&](int i) {
    return _mm_loadu_si128(
        reinterpret_cast<const __m128i*>(at + static_cast<std::size_t>(i) * stride));
  };
  __m512i rows = _mm512_castsi128_si512(row(0));
  rows = _mm512_inserti32x4(rows, row(4), 1);
  rows = _mm512_inserti32x4(rows, row(8), 2);
  return _mm512_inserti32x4(rows, row(12), 3);
}

inline __m512i broadcast_quad(const std::int8_t* at) {
  int quad;
  __builtin_memcpy(&quad, at, 4);
  return _mm512_set1_epi32(quad);
}

/// sums[i][row] += slab * x[i] for N tokens.
template <int N>
void multiply_slab(const Slab& slab, int groups, SlabInputs in, float (*sums)[kRows]) {
  __m512 acc[N];
  for (int i = 0; i < N; ++i) acc[i] = _mm512_load_ps(sums[i]);
  for (int group = 0; group < groups; ++group, in.x += kGroup, ++in.scales, ++in.sums) {
    // Quads outside, tokens inside: neighbours in the instruction stream belong to different sums,
    // which hides the latency of vpdpbusd. At one or two tokens a second set of sums does
    // (integers: the total is the same).
    constexpr int kSets = N <= 2 ? 2 : 1;
    __m512i products[kSets][N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      products[0][i] =
          _mm512_set1_epi32(-128 * in.sums[static_cast<std::size_t>(i) * in.group_stride]);
      if (kSets == 2) products[kSets - 1][i] = _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int j = 0; j < kQuads; ++j) {
      const __m512i quad = _mm512_load_si512(slab.quads[group][j]);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        __m512i& sum = products[j % kSets][i];
        sum = _mm512_dpbusd_epi32(
            sum, quad, broadcast_quad(in.x + static_cast<std::size_t>(i) * in.stride + 4 * j));
      }
    }
    const __m512 w_scales = _mm512_load_ps(slab.scales[group]);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      __m512i sum = products[0][i];
      if (kSets == 2) sum = _mm512_add_epi32(sum, products[kSets - 1][i]);
      const __m512 x_scale =
          _mm512_set1_ps(in.scales[static_cast<std::size_t>(i) * in.group_stride]);
      acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(w_scales, x_scale), acc[i]);
    }
  }
  for (int i = 0; i < N; ++i) _mm512_store_ps(sums[i], acc[i]);
}

struct Tier {
  using MultiplySlab = void (*)(const Slab&, int groups, SlabInputs, float (*sums)[kRows]);
  static constexpr int kTokensAtOnce = 8;
  static constexpr MultiplySlab kMultiplySlab[kTokensAtOnce] = {
      multiply_slab<1>, multiply_slab<2>, multiply_slab<3>, multiply_slab<4>,
      multiply_slab<5>, multiply_slab<6>, multiply_slab<7>, multiply_slab<8>};

  /// 16 weights of 16 rows to four quads: a 4 x 4 transposition of 32-bit words inside each 128-bit
  /// lane.
  static void pack_half_group(const unsigned char* at, std::size_t stride,
                              unsigned char (*quads)[64]) {
    const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
    const __m512i a = four_rows(at, stride);
    const __m512i b = four_rows(at + stride, stride);
    const __m512i c = four_rows(at + 2 * stride, stride);
    const __m512i d = four_rows(at + 3 * stride, stride);
    const __m512i ab_low = _mm512_xor_si512(_mm512_unpacklo_epi32(a, b), flip);
    const __m512i ab_high = _mm512_xor_si512(_mm512_unpackhi_epi32(a, b), flip);
    const __m512i cd_low = _mm512_xor_si512(_mm512_unpacklo_epi32(c, d), flip);
    const __m512i cd_high = _mm512_xor_si512(_mm512_unpackhi_epi32(c, d), flip);
    _mm512_store_si512(quads[0], _mm512_unpacklo_epi64(ab_low, cd_low));
    _mm512_store_si512(quads[1], _mm512_unpackhi_epi64(ab_low, cd_low));
    _mm512_store_si512(quads[2], _mm512_unpacklo_epi64(ab_high, cd_high));
    _mm512_store_si512(quads[3], _mm512_unpackhi_epi64(ab_high, cd_high));
  }

  static void store_sums(const float* sums, int rows, const Outputs& out, int t, int n) {
    const auto lanes = static_cast<__mmask16>((1U << static_cast<unsigned>(rows)) - 1U);
    float* target =
        out.values + static_cast<std::size_t>(t) * out.stride + static_cast<std::size_t>(n);
    __m512 product = _mm512_load_ps(sums);
    if (out.bias != nullptr)
      product = _mm512_add_ps(product, _mm512_maskz_loadu_ps(lanes, out.bias + n));
    if (out.store == Store::kAdd)
      product = _mm512_add_ps(_mm512_maskz_loadu_ps(lanes, target), product);
    _mm512_mask_storeu_ps(target, lanes, product);
  }
};

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
    out.sums[group] = _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
    out.totals[group] = static_cast<float>(out.sums[group]) * out.scales[group];
  }
}

}  // namespace

const CpuKernels& avx512_kernels() {
  static constexpr CpuKernels kKernels{matmul<Tier>, attention,  rms_norm, quantize,
                                       silu_mul,     layer_norm, gelu_mul, to_half};
  return kKernels;
}

}  // namespace efimd::engine::cpu
