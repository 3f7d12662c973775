#pragma once

#include "kernels/joined.cuh"
#include "kernels/mma.cuh"

// Attention over KV in f16 on the tensor cores. A tile is 16 heads of tokens, all of one KV head.
// Row i of a step is head i % G of token i / G, with G = H / Hk heads that share their K and V. Of
// lane 4g + c are rows g and g + 8, and
//   scores   of each 8 tokens of a page those of 2c, 2c + 1: four groups
//   values   elements 32 i + 4 n + j of a row are column n of group 4 i + j
// Queries and weights are rounded to f16, as K and V are; sums are f32. The softmax's sum uses a
// weight's rounded value, too. A row's bits are the same in every tile, because its pages, products
// and sums have the same order. Tokens that only other rows see weigh 0, which adds nothing.
//
// Why it should be faster. A warp's instructions for a page (nvcc's PTX for compute capability 8.0, heads of 64): attention()
// about 920 for one row, this about 900 for 16. In prompts that is a sixteenth. For one token a block copies a page with four
// warps and computes with one, about 1,800; attention() has 920 for each head that shares its K and V: 6,400 for the 7 of
// Qwen2.5-0.5B, 3.6 times as many. With one or two such heads single tokens gain nothing; but their bits must be those of a
// prompt.
namespace efimd::kernels {

constexpr u32 kUpper = 0, kLower = 1;  ///< rows g and g + 8

/// Low in the lower half.
__device__ __forceinline__ u32 two_halves(float low, float high) {
  return to_half(low) | to_half(high) << 16U;
}

/// A head of a token.
struct TileRow {
  u32 token;  ///< T or more: there is none
  u32 head;
  u32 hidden = 0, visible = 0;  ///< tokens hidden .. visible - 1 are seen
};

__device__ __forceinline__ TileRow tile_row(u32 token, u32 head, const uint2* rows,
                                            const AttentionSizes& s) {
  TileRow row{token, head};
  if (token >= s.tokens) return row;
  row.visible = rows[token].x + 1;
  row.hidden = row.visible > s.window ? row.visible - s.window : 0;
  return row;
}

/// A lane's part of the queries of 16 rows: of each piece of 32 elements 8c .. 8c + 7, as two
/// products take them.
template <u32 kPieces>
struct TileQueries {
  u32 halves[kPieces][2][4];

  __device__ __forceinline__ TileQueries(const float* qkv, const TileRow (&rows)[2],
                                         const AttentionSizes& s) {
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      // If there is no row, the first is read and sees nothing, so that no branch stands between
      // the loads.
      const bool there = rows[r].token < s.tokens;
      const size_t row = static_cast<size_t>(rows[r].token) * (s.heads + 2 * s.kv_heads);
      const float* q = qkv + (there ? row + rows[r].head : 0) * (32 * kPieces);
#pragma unroll
      for (u32 i = 0; i < 2 * kPieces; ++i) {
        const auto four =
            *reinterpret_cast<const float4*>(q + i / 2 * 32 + threadIdx.x % 4 * 8 + i % 2 * 4);
        halves[i / 2][i % 2][r] = two_halves(four.x, four.y);
        halves[i / 2][i % 2][r + 2] = two_halves(four.z, four.w);
      }
    }
  }
};

/// Adds to q . k of 8 tokens a piece of 32 elements, of which `key` are the token g's 8c .. 8c + 7.
__device__ __forceinline__ void add_scores(const u32 (&queries)[2][4], const uint4& key,
                                           float (&scores)[4]) {
  const u32 first[2] = {key.x, key.y}, second[2] = {key.z, key.w};
  mma_f16(queries[0], first, scores);
  mma_f16(queries[1], second, scores);
}

/// -INFINITY for what a row does not see; the first score is that of token `token`.
__device__ __forceinline__ void hide_unseen(u32 token, const TileRow (&rows)[2],
                                            float (&scores)[4]) {
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const TileRow& row = rows[i / 2];
    const u32 at = token + i % 2;
    if (at < row.hidden || at >= row.visible) scores[i] = -INFINITY;
  }
}

/// Over the four lanes that hold a row, the same bits in each.
__device__ __forceinline__ float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 2));
}
__device__ __forceinline__ float row_sum(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, 1);
  return value + __shfl_xor_sync(kWholeWarp, value, 2);
}

/// The weights of two scores of a row against its maximum, and their sum.
struct TwoWeights {
  u32 halves;
  float sum;
  __device__ __forceinline__ TwoWeights(float first, float second, float most) {
    const float from = most == -INFINITY ? 0.0F : most;  // of a row that has seen nothing yet
    halves = float_to_half(expf(first - from)) | float_to_half(expf(second - from)) << 16U;
    const float2 rounded = both_halves(halves);
    sum = rounded.x + rounded.y;
  }
};

/// The softmax of rows g and g + 8 over pages that come one after another.
struct TileSoftmax {
  float most[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};

  /// Raises a row's maximum; what it held is to be multiplied with the result.
  __device__ __forceinline__ float raise(u32 row, float most_of_page) {
    const float raised = fmaxf(most[row], most_of_page);
    const float kept = exp_from(most[row], raised);
    most[row] = raised;
    return kept;
  }
  /// `sums` are those of this lane's weights, group by group.
  __device__ __forceinline__ void add(u32 row, float kept, const float (&sums)[4]) {
    sum[row] = fmaf(sum[row], kept, row_sum(sums[0] + sums[1] + sums[2] + sums[3]));
  }
};

/// A warp's state of rows g and g + 8: the softmax of the split in progress and the values that it
/// weighs, in groups of 8 elements of the result. If the warp goes through all splits, also the
/// state of those before it.
template <u32 kEights, bool kJoins>
struct RowSums {
  TileSoftmax softmax;
  float values[kEights][4] = {};
  Joined joined[2];
  float all[kJoins ? kEights : 1][4] = {};

  __device__ __forceinline__ void scale(const float (&by)[2]) {
#pragma unroll
    for (u32 i = 0; i < 4 * kEights; ++i) values[i / 4][i % 4] *= by[i % 4 / 2];
  }
  /// The split in progress ends.
  __device__ __forceinline__ void join_split() {
    const float2 shares[2] = {joined[0].take(softmax.most[0], softmax.sum[0]),
                              joined[1].take(softmax.most[1], softmax.sum[1])};
#pragma unroll
    for (u32 i = 0; i < 4 * kEights; ++i) {
      float& value = values[i / 4][i % 4];
      float& to = all[i / 4][i % 4];
      to = join(to, value, shares[i % 4 / 2]);
      value = 0;
    }
    softmax = {};
  }
  // Of the splits that were joined, or of the one that was not.
  __device__ __forceinline__ void write_head(u32 row, float* partial) const {
    partial[0] = kJoins ? joined[row].most : softmax.most[row];
    partial[1] = kJoins ? joined[row].sum : softmax.sum[row];
  }
  __device__ __forceinline__ float value(u32 eight, u32 at) const {
    return kJoins ? all[kJoins ? eight : 0][at] : values[eight][at];
  }
};

/// values += weights * V for 16 tokens: `words` of tokens 2c, 2c + 1, 2c + 8 and 2c + 9, of column g their elements `low` and
/// `high`.
__device__ __forceinline__ void add_values(const u32 (&weights)[4], const u32 (&words)[4],
                                           float (&low)[4], float (&high)[4]) {
  const u32 lows[2] = {__byte_perm(words[0], words[1], 0x5410U),
                       __byte_perm(words[2], words[3], 0x5410U)};
  const u32 highs[2] = {__byte_perm(words[0], words[1], 0x7632U),
                        __byte_perm(words[2], words[3], 0x7632U)};
  mma_f16(weights, lows, low);
  mma_f16(weights, highs, high);
}

/// The token of a page whose value is word i of add_values(), for its first or second 16 tokens.
__device__ __forceinline__ u32 value_token(u32 sixteen, u32 i) {
  return 16 * sixteen + 8 * (i / 2) + 2 * (threadIdx.x % 4) + i % 2;
}

__device__ __forceinline__ float* partial_of(float* partials, const TileRow& row, u32 split,
                                             const AttentionSizes& s) {
  return partials + ((static_cast<size_t>(row.token) * s.heads + row.head) * s.splits + split) *
                        (kPartialHead + s.head_width);
}

__device__ __forceinline__ const u32* page_of(const u32* kv, u32 page, u32 kv_head, u32 page_words,
                                              const AttentionSizes& s) {
  return kv + (static_cast<size_t>(page) * s.kv_heads + kv_head) * 2 * page_words;
}

}  // namespace efimd::kernels
