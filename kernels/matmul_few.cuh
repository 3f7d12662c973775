#pragma once

#include "kernels/block_sums.cuh"
#include "kernels/group_products.cuh"
#include "kernels/outputs.cuh"
#include "kernels/overlap.cuh"

// Products of quantized weights with some tokens, on the tensor cores, bit for bit those of
// matmul(). There the reading of weights bounds a single token. With eight tokens, reading them
// once for every row would take longer than that.
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

/// The places of a lane's tokens: the quants of token 8 i + g, and the scales of tokens 8 i + 2c
/// and 8 i + 2c + 1.
template <u32 kColumns>
struct FewTokens {
  const u32* quants[kColumns];
  const float2* scales[kColumns][2];

  /// Rows of `stride` words; tokens past the last repeat it.
  __device__ __forceinline__ FewTokens(const u32* x, const float2* of_x, u32 first, u32 count,
                                       u32 stride, u32 groups) {
    const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
    for (u32 i = 0; i < kColumns; ++i) {
      quants[i] = x + static_cast<size_t>(at_most(first + 8 * i + g, count)) * stride;
#pragma unroll
      for (u32 j = 0; j < 2; ++j)
        scales[i][j] =
            of_x + static_cast<size_t>(at_most(first + 8 * i + 2 * c + j, count)) * groups;
    }
  }
};

/// A warp's sums of the products of 16 rows with tokens.
template <Packed kType, u32 kColumns>
struct ClassSums {
  float classes[4][kColumns][4] = {};

  // Four groups from `first` on. Groups past the last are read and left out, because loads would
  // wait for a branch.
  __device__ __forceinline__ void add(const FourGroups<kType>& weights,
                                      const FewTokens<kColumns>& tokens, u32 first, u32 groups) {
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const bool there = first + i < groups;
      const u32 group = at_most(first + i, groups);
      const float2 of_rows[2] = {weights.scales_of(i, 0), weights.scales_of(i, 1)};
#pragma unroll
      for (u32 column = 0; column < kColumns; ++column) {
        u32 b[2];
        token_quads<kType>(tokens.quants[column] + group * 8, b);
        const float2 even = tokens.scales[column][0][group], odd = tokens.scales[column][1][group];
        float(&sums)[4] = classes[i][column];
        float next[4] = {sums[0], sums[1], sums[2], sums[3]};
        add_products<kType>(weights.quads[i], b, of_rows, make_float2(even.x, odd.x),
                            make_float2(even.y, odd.y), next);
#pragma unroll
        for (u32 at = 0; at < 4; ++at) sums[at] = there ? next[at] : sums[at];
      }
    }
  }
  /// The four of these classes.
  __device__ __forceinline__ void sum_up(float (&sums)[kColumns][4]) const {
#pragma unroll
    for (u32 i = 0; i < 4 * kColumns; ++i) {
      const u32 column = i / 4, at = i % 4;
      sums[column][at] = (classes[0][column][at] + classes[1][column][at]) +
                         (classes[2][column][at] + classes[3][column][at]);
    }
  }
};

// A warp's products of 16 rows, of which `upper` and `lower` are this lane's.
template <Packed kType, u32 kColumns>
__device__ __forceinline__ void multiply_few(const u32* upper, const u32* lower,
                                             const RowLayout& layout, u32 groups,
                                             const FewTokens<kColumns>& tokens,
                                             float (&sums)[kColumns][4]) {
  ClassSums<kType, kColumns> classes;
  for (u32 first = 4 * threadIdx.y; first < groups; first += 32) {
    FourGroups<kType> weights;
    weights.load(upper, lower, layout, first, groups);
    classes.add(weights, tokens, first, groups);
  }
  classes.sum_up(sums);
}

// matmul() of up to 8 kColumns tokens, without experts.
//   operands as there; quantized weights   s.share == 1, s.experts == 0
//   grid (T / (8 kColumns), min(N, 32768) / kFewRows, N / 32768), block (32, kFewWarps)
//   must read the part once for each 8 kColumns tokens: bound by bandwidth, judge it in GB/s.
template <Packed kType, u32 kColumns>
__device__ __forceinline__ void matmul_few(const u32* w, const u32* x, const float2* scales,
                                           const float* bias, float* result, const MatmulSizes& s) {
  constexpr u32 kTokens = 8 * kColumns;
  __shared__ BlockSums<kFewWarps, kColumns> fours;
  const u32 first_row = blockIdx.z * kMatmulRowsMax + blockIdx.y * kFewRows;
  const u32 g = threadIdx.x / 4, groups = s.cols / 32;
  // Rows and tokens past the last repeat it.
  const u32* upper = w + static_cast<size_t>(at_most(first_row + g, s.rows)) * s.row.row_words;
  const u32* lower = w + static_cast<size_t>(at_most(first_row + g + 8, s.rows)) * s.row.row_words;
  fetch_weights<kFewRows, kFewWarps>(w, s);
  await_operands();
  if (first_row >= s.rows) return;  // whole blocks
  const u32 first_token = blockIdx.x * kTokens;
  const FewTokens<kColumns> tokens(x, scales, first_token, s.tokens, groups * 8, groups);
  float sums[kColumns][4];
  multiply_few<kType>(upper, lower, s.row, groups, tokens, sums);
  fours.put(sums);
  __syncthreads();
  for (u32 i = threadIdx.y * 32 + threadIdx.x; i < kTokens * kFewRows; i += 32 * kFewWarps) {
    const u32 n = first_row + i % kFewRows, t = first_token + i / kFewRows;
    if (n < s.rows && t < s.tokens)
      write_product(fours.sum(i / kFewRows, i % kFewRows), bias, result, n, t, s);
  }
}

}  // namespace efimd::kernels
