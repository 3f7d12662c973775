// Products of BF16 weights with AVX-512 BF16; all else is the table of AVX-512. Compiled with flags
// of its own: see kernels.h on what may be included here.
//
// An instruction multiplies 16 pairs of bf16, exactly, and adds them to 16 sums in f32. That is
// twice as many products as in f32, and weights need no conversion. Inputs are rounded to bf16 for
// it, to nearest even. So a product differs from the specification's by up to 2^-8 of the sum of
// its terms' sizes (numbers below 2^-126 count as 0).
#include <immintrin.h>

#include "engine/backend/cpu/avx512/vector_avx512.h"
#include "engine/backend/cpu/kernels/kernels.h"
// It works on the Vector above.
#include "engine/backend/cpu/simd/simd_dot.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kStep = 32;  ///< columns of a register

inline __m512bh weights_at(const unsigned char* at, int count) {
  const auto mask = count < kStep ? (1U << static_cast<unsigned>(count)) - 1U : ~0U;
  return reinterpret_cast<__m512bh>(_mm512_maskz_loadu_epi16(mask, at));
}

inline __m512bh inputs_at(const float* x, int count) {
  const auto mask = count < kStep ? (1U << static_cast<unsigned>(count)) - 1U : ~0U;
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask >> 16U), x + 16);
  return _mm512_cvtne2ps_pbh(high, low);
}

/// R rows from `n` times N tokens from `t`: as dot_tile(), columns in pairs.
template <int R, int N>
void pair_tile(const Weights& weights, int n, const Inputs& in, int t, const Outputs& out) {
  const int cols = weights.cols;
  const unsigned char* row = weights.data + static_cast<std::size_t>(n) * weights.row_bytes;
  const float* x = in.values + static_cast<std::size_t>(t) * static_cast<std::size_t>(cols);
  __m512 sums[R][N];
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) sums[r][i] = _mm512_setzero_ps();
  for (int k = 0; k < cols; k += kStep) {
    __m512bh inputs[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      inputs[i] = inputs_at(x + static_cast<std::ptrdiff_t>(i) * cols + k, cols - k);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const unsigned char* at = row + static_cast<std::size_t>(r) * weights.row_bytes + k * 2;
      // The same columns of the next R rows; a prefetch past the mapping is harmless.
      __builtin_prefetch(at + R * weights.row_bytes);
      const __m512bh w = weights_at(at, cols - k);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) sums[r][i] = _mm512_dpbf16_ps(sums[r][i], w, inputs[i]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) store_product(out, t + i, n + r, Vector::sum(sums[r][i]));
}

template <int R>
void pair_rows(const Weights& weights, int n, const Inputs& in, const Outputs& out) {
  constexpr int kTokens = Vector::kTileTokens;
  int t = 0;
  for (; t + kTokens <= in.tokens; t += kTokens) pair_tile<R, kTokens>(weights, n, in, t, out);
  if constexpr (kTokens > 2)
    for (; t + 2 <= in.tokens; t += 2) pair_tile<R, 2>(weights, n, in, t, out);
  for (; t < in.tokens; ++t) pair_tile<R, 1>(weights, n, in, t, out);
}

void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  if (weights.type != WeightType::kBF16) return avx512_kernels().matmul(weights, rows, in, out);
  int n = rows.first;
  for (; n + Vector::kTileRows <= rows.last; n += Vector::kTileRows)
    pair_rows<Vector::kTileRows>(weights, n, in, out);
  for (; n < rows.last; ++n) pair_rows<1>(weights, n, in, out);
}

CpuKernels with_matmul(CpuKernels kernels) {
  kernels.matmul = matmul;
  return kernels;
}

}  // namespace

const CpuKernels& avx512bf16_kernels() {
  static const CpuKernels kKernels = with_matmul(avx512_kernels());
  return kKernels;
}

}  // namespace efimd::engine::cpu
