// The kernels with AVX-512 (F, BW, VL, DQ) and VNNI. Compiled with flags of its own: see kernels.h on what may be
// included here.
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/vector_avx512.h"
// The simd files work on the Vector above.
#include "engine/backend/cpu/simd_attention.h"
#include "engine/backend/cpu/simd_dot.h"
#include "engine/backend/cpu/simd_rows.h"

namespace efimd::engine::cpu {

namespace {

// Q8_0 x int8. Sixteen weight rows, one per lane, are transposed from the file's blocks into a slab that stays in
// L1, then multiplied with all tokens of the step; weights come from memory once per step.
//
//   file    [16 rows][cols / 32] blocks of 34 bytes: f16 scale, int8 x 32
//   slab    quads [32 groups][8][16 rows][4]: byte i of quad j is weight 4j + i of the group, xor 0x80 (= + 128)
//   x       int8 [T][cols], four of them broadcast to all rows
//
// vpdpbusd multiplies unsigned by signed bytes: sum((w + 128) * x) = sum(w * x) + 128 * sum(x), so sums start at
// Inputs::offsets = -128 * sum(x). All of that is exact; then sum += float(group) * (w_scale * x_scale), in order of
// the groups, one lane per row.
constexpr int kRows = 16;
constexpr int kSlabGroups = 32;
// At few tokens memory decides: short slabs keep it busy while they are multiplied. Against slabs of 32 groups, one
// core of a busy Xeon (Emerald Rapids, 2 cores, cols 4864): 14.2 -> 18.5 GB/s at one token, 10.5 -> 15 at four.
constexpr int kFewTokens = 16;
constexpr int kSlabGroupsFew = 4;
constexpr int kAheadGroups = 16;  // of prefetch, in the order of reading
constexpr int kQuads = kGroup / 4;
constexpr int kTokensAtOnce = 8;
constexpr int kTokensPerSlab = 64;

struct alignas(64) Slab {
  unsigned char quads[kSlabGroups][kQuads][64];
  float scales[kSlabGroups][kRows];
  std::uint16_t halves[kSlabGroups][kRows];
};

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

/// 16 weights of 16 rows to four quads: a 4 x 4 transposition of 32-bit words inside each 128-bit lane.
inline void pack_half_group(const unsigned char* at, std::size_t stride,
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

/// `groups` blocks of 16 rows from `at`; meanwhile asks memory for the same of `next`.
void pack_slab(const unsigned char* at, std::size_t stride, int groups, const unsigned char* next,
               Slab& slab) {
  for (int group = 0; group < groups; ++group, at += kGroupBytes, next += kGroupBytes) {
    for (int r = 0; r < kRows; ++r) {
      __builtin_memcpy(&slab.halves[group][r], at + static_cast<std::size_t>(r) * stride, 2);
      __builtin_prefetch(next + static_cast<std::size_t>(r) * stride);
    }
    pack_half_group(at + 2, stride, slab.quads[group]);
    pack_half_group(at + 18, stride, slab.quads[group] + 4);
  }
  for (int group = 0; group < groups; ++group)
    Vector::store(slab.scales[group], Vector::load_half(slab.halves[group]));
}

inline __m512i broadcast_quad(const std::int8_t* at) {
  int quad;
  __builtin_memcpy(&quad, at, 4);
  return _mm512_set1_epi32(quad);
}

/// sums[i][row] += slab * x[i] for N tokens.
template <int N>
void multiply_slab(const Slab& slab, int groups, const Inputs& in, std::size_t cols, int t,
                   int first_group, float (*sums)[kRows]) {
  __m512 acc[N];
  for (int i = 0; i < N; ++i) acc[i] = _mm512_load_ps(sums[i]);
  const std::size_t group_stride = cols / kGroup;
  const std::int8_t* x = in.quants + static_cast<std::size_t>(t) * cols + first_group * kGroup;
  const std::size_t at =
      static_cast<std::size_t>(t) * group_stride + static_cast<std::size_t>(first_group);
  const float* scales = in.scales + at;
  const std::int32_t* offsets = in.offsets + at;
  for (int group = 0; group < groups; ++group, x += kGroup, ++scales, ++offsets) {
    // Quads outside, tokens inside: neighbours in the instruction stream belong to different sums, which hides the
    // latency of vpdpbusd. At one or two tokens a second set of sums does (integers: the total is the same).
    constexpr int kSets = N <= 2 ? 2 : 1;
    __m512i products[kSets][N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      products[0][i] = _mm512_set1_epi32(offsets[static_cast<std::size_t>(i) * group_stride]);
      if (kSets == 2) products[kSets - 1][i] = _mm512_setzero_si512();
    }
#pragma GCC unroll 8
    for (int j = 0; j < kQuads; ++j) {
      const __m512i quad = _mm512_load_si512(slab.quads[group][j]);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        __m512i& sum = products[j % kSets][i];
        sum = _mm512_dpbusd_epi32(sum, quad,
                                  broadcast_quad(x + static_cast<std::size_t>(i) * cols + 4 * j));
      }
    }
    const __m512 w_scales = _mm512_load_ps(slab.scales[group]);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      __m512i sum = products[0][i];
      if (kSets == 2) sum = _mm512_add_epi32(sum, products[kSets - 1][i]);
      const __m512 x_scale = _mm512_set1_ps(scales[static_cast<std::size_t>(i) * group_stride]);
      acc[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(w_scales, x_scale), acc[i]);
    }
  }
  for (int i = 0; i < N; ++i) _mm512_store_ps(sums[i], acc[i]);
}

using MultiplySlab = void (*)(const Slab&, int, const Inputs&, std::size_t, int, int,
                              float (*)[kRows]);
constexpr MultiplySlab kMultiplySlab[kTokensAtOnce] = {
    multiply_slab<1>, multiply_slab<2>, multiply_slab<3>, multiply_slab<4>,
    multiply_slab<5>, multiply_slab<6>, multiply_slab<7>, multiply_slab<8>};

void store_sums(const float* sums, int rows, const Outputs& out, int t, int n) {
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

/// Copies `groups` blocks of the rows that there are, so that a slab can be packed from 16 rows where fewer are left.
void copy_rows(const unsigned char* at, std::size_t stride, int rows, int groups,
               unsigned char* copy) {
  const std::size_t bytes = static_cast<std::size_t>(groups) * kGroupBytes;
  __builtin_memset(copy, 0, kRows * bytes);
  for (int r = 0; r < rows; ++r)
    __builtin_memcpy(copy + static_cast<std::size_t>(r) * bytes,
                     at + static_cast<std::size_t>(r) * stride, bytes);
}

/// The block that is kAheadGroups groups after group `group` of the rows from n, in the order in which they are read;
/// `otherwise` behind the last row.
const unsigned char* ahead_of(const Weights& weights, RowRange rows, int n, int group,
                              const unsigned char* otherwise) {
  const int groups = weights.cols / kGroup;
  const int row = n + (group + kAheadGroups) / groups * kRows;
  if (row + kRows > rows.last) return otherwise;
  return weights.data + static_cast<std::size_t>(row) * weights.row_bytes +
         static_cast<std::size_t>((group + kAheadGroups) % groups) * kGroupBytes;
}

/// One group of up to 16 rows from n, for tokens t .. t + tokens - 1 (at most 64).
void multiply_rows(const Weights& weights, RowRange rows, int n, const Inputs& in, int t,
                   int tokens, const Outputs& out) {
  Slab slab;
  alignas(64) float sums[kTokensPerSlab][kRows];
  __builtin_memset(sums, 0, static_cast<std::size_t>(tokens) * sizeof sums[0]);
  unsigned char copy[kRows * kSlabGroups * kGroupBytes];
  const int count = rows.last - n < kRows ? rows.last - n : kRows;
  const int groups = weights.cols / kGroup;
  const int slab_groups = tokens <= kFewTokens ? kSlabGroupsFew : kSlabGroups;
  const std::size_t stride = weights.row_bytes;
  const unsigned char* row = weights.data + static_cast<std::size_t>(n) * stride;
  for (int first = 0; first < groups; first += slab_groups) {
    const int taken = groups - first < slab_groups ? groups - first : slab_groups;
    const unsigned char* at = row + static_cast<std::size_t>(first) * kGroupBytes;
    if (count < kRows) {
      copy_rows(at, stride, count, taken, copy);
      pack_slab(copy, static_cast<std::size_t>(taken) * kGroupBytes, taken, copy, slab);
    } else {
      pack_slab(at, stride, taken, ahead_of(weights, rows, n, first, at), slab);
    }
    for (int i = 0; i < tokens; i += kTokensAtOnce) {
      const int together = tokens - i < kTokensAtOnce ? tokens - i : kTokensAtOnce;
      kMultiplySlab[together - 1](slab, taken, in, static_cast<std::size_t>(weights.cols), t + i,
                                  first, sums + i);
    }
  }
  for (int i = 0; i < tokens; ++i) store_sums(sums[i], count, out, t + i, n);
}

void q8_0_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  for (int n = rows.first; n < rows.last; n += kRows) {
    for (int t = 0; t < in.tokens; t += kTokensPerSlab) {
      const int tokens = in.tokens - t < kTokensPerSlab ? in.tokens - t : kTokensPerSlab;
      multiply_rows(weights, rows, n, in, t, tokens, out);
    }
  }
}

void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  switch (weights.type) {
    case WeightType::kF32:
      return dot_matmul<FloatWeights>(weights, rows, in, out);
    case WeightType::kF16:
      return dot_matmul<HalfWeights>(weights, rows, in, out);
    case WeightType::kBF16:
      return dot_matmul<BfloatWeights>(weights, rows, in, out);
    case WeightType::kQ8_0:
      return q8_0_matmul(weights, rows, in, out);
  }
}

void quantize(const float* x, int width, std::int8_t* quants, float* scales,
              std::int32_t* offsets) {
  for (int group = 0; group < width / kGroup; ++group, x += kGroup, quants += kGroup) {
    const float largest = largest_of_group(x);
    const bool zero = largest < kQuantizeFloor;
    const __m512 inverse = _mm512_set1_ps(zero ? 0.0F : 127.0F / largest);
    scales[group] = zero ? 0.0F : largest / 127.0F;
    const __m512i low = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse));
    const __m512i high = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16), inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(quants), _mm512_cvtsepi32_epi8(low));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(quants + 16), _mm512_cvtsepi32_epi8(high));
    offsets[group] = -128 * _mm512_reduce_add_epi32(_mm512_add_epi32(low, high));
  }
}

}  // namespace

const CpuKernels& avx512_kernels() {
  static constexpr CpuKernels kKernels{matmul, attention, rms_norm, quantize, silu_mul, to_half};
  return kKernels;
}

}  // namespace efimd::engine::cpu
