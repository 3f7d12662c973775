#pragma once

#include "kernels/block_sums.cuh"
#include "kernels/group_products.cuh"
#include "kernels/outputs.cuh"

// Products of quantized weights with up to eight tokens, on the tensor cores, bit for bit those of
// matmul().
//
// Why it should be faster, for eight tokens:
//   instructions  of a warp for a row, a token and a group of 32 (nvcc's PTX for compute capability
//                 8.0, Q8_0 and Q4_K): matmul() 1.27 and 2.23, this 0.53 and 0.70: 2.4 and 3.2
//                 times as few. For four tokens 1.2 and 1.6 times, for fewer there is no gain.
//   bytes         matmul() reads the rows once for each token, all but once out of the cache. Eight
//                 of these readings take 1.6 times as long as one out of memory even if the cache
//                 is five times as fast; an H100's is less than twice as fast.
// A second eight of tokens in a block would save a fifth, and was deleted.
//
// A block has 16 rows. Each of its warps has the groups of four neighbouring classes (those 32
// apart), which are a four of sum_of_classes().
namespace efimd::kernels {

/// Four groups of the rows g and g + 8, as a lane has them: its part of each, and lane 4g + c the scales of group c.
template <Packed kType>
struct FourGroups {
  using Of = Weights<kType>;
  u32 quads[4][4];
  float2 scales[2];

  /// Groups past the last repeat it.
  __device__ __forceinline__ void load(const u32* upper, const u32* lower, const RowLayout& layout,
                                       u32 first, u32 groups) {
    const u32 own = at_most(first + threadIdx.x % 4, groups);
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const u32* row = half == 0 ? upper : lower;
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const u32 group = at_most(first + i, groups);
        row_quads<kType>(row + group * Of::kLowWords, row + layout.high_at + group * Of::kHighWords,
                         quads[i][half], quads[i][2 + half]);
      }
      scales[half] = row_scales<kType>(Of::scale_bits(row, layout, own));
    }
  }
  /// Of a group; by the whole warp.
  __device__ __forceinline__ float2 scales_of(u32 i, u32 half) const {
    const int lane = static_cast<int>(threadIdx.x / 4 * 4 + i);
    return make_float2(__shfl_sync(kWholeWarp, scales[half].x, lane),
                       __shfl_sync(kWholeWarp, scales[half].y, lane));
  }
};

/// The places of a lane's tokens: the quants of token g, and the scales of tokens 2c and 2c + 1.
struct FewTokens {
  const u32* quants;
  const float2* scales[2];

  /// Tokens past the last repeat it.
  __device__ __forceinline__ FewTokens(const u32* x, const float2* of_x, u32 first, u32 count,
                                       u32 groups) {
    const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
    quants = x + static_cast<size_t>(at_most(first + g, count)) * groups * 8;
#pragma unroll
    for (u32 j = 0; j < 2; ++j)
      scales[j] = of_x + static_cast<size_t>(at_most(first + 2 * c + j, count)) * groups;
  }
};

/// A warp's sums of the products of 16 rows with tokens, by class.
using ClassSums = float[4][4];

// Four groups from `first` on. Groups past the last are read and left out, because loads would wait
// for a branch.
template <Packed kType>
__device__ __forceinline__ void add_four_groups(const FourGroups<kType>& weights,
                                                const FewTokens& tokens, u32 first, u32 groups,
                                                ClassSums& classes) {
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const bool there = first + i < groups;
    const u32 group = at_most(first + i, groups);
    const float2 of_rows[2] = {weights.scales_of(i, 0), weights.scales_of(i, 1)};
    u32 b[2];
    token_quads<kType>(tokens.quants + group * 8, b);
    const float2 even = tokens.scales[0][group], odd = tokens.scales[1][group];
    float(&sums)[4] = classes[i];
    float next[4] = {sums[0], sums[1], sums[2], sums[3]};
    add_products<kType>(weights.quads[i], b, of_rows, make_float2(even.x, odd.x),
                        make_float2(even.y, odd.y), next);
#pragma unroll
    for (u32 at = 0; at < 4; ++at) sums[at] = there ? next[at] : sums[at];
  }
}

// matmul() of up to eight tokens a block, without experts.
//   operands as there; quantized weights   s.share == 1, s.experts == 0
//   grid (T / kTokensOfTile, min(N, 32768) / kFewRows, N / 32768), block (32, kFewWarps)
//   must read the part once for each eight tokens: bound by bandwidth, judge it in GB/s.
template <Packed kType>
__device__ __forceinline__ void matmul_few(const u32* w, const u32* x, const float2* scales,
                                           const float* bias, float* result, const MatmulSizes& s) {
  __shared__ BlockSums<kFewWarps> fours;
  const u32 first_row = blockIdx.z * kMatmulRowsMax + blockIdx.y * kFewRows;
  if (first_row >= s.rows) return;  // whole blocks
  const u32 g = threadIdx.x / 4, groups = s.cols / 32;
  // Rows and tokens past the last repeat it.
  const u32* upper = w + static_cast<size_t>(at_most(first_row + g, s.rows)) * s.row.row_words;
  const u32* lower = w + static_cast<size_t>(at_most(first_row + g + 8, s.rows)) * s.row.row_words;
  const u32 first_token = blockIdx.x * kTokensOfTile;
  const FewTokens tokens(x, scales, first_token, s.tokens, groups);
  ClassSums classes = {};
  for (u32 first = 4 * threadIdx.y; first < groups; first += 32) {
    FourGroups<kType> weights;
    weights.load(upper, lower, s.row, first, groups);
    add_four_groups<kType>(weights, tokens, first, groups, classes);
  }
  float sums[4];
#pragma unroll
  for (u32 at = 0; at < 4; ++at)
    sums[at] = (classes[0][at] + classes[1][at]) + (classes[2][at] + classes[3][at]);
  fours.put(sums);
  __syncthreads();
  for (u32 i = threadIdx.y * 32 + threadIdx.x; i < kTokensOfTile * kFewRows; i += 32 * kFewWarps) {
    const u32 n = first_row + i % kFewRows, t = first_token + i / kFewRows;
    if (n < s.rows && t < s.tokens)
      write_product(fours.sum(i / kFewRows, i % kFewRows), bias, result, n, t, s);
  }
}

}  // namespace efimd::kernels
