#pragma once

#include "kernels/activate.cuh"
#include "kernels/head_pair.cuh"
#include "kernels/matmul.cuh"
#include "kernels/normed_rows.cuh"
#include "kernels/overlap.cuh"

// Products of a few tokens with quantized weights, in one kernel with the norm in front and with what follows: where a token
// alone is evaluated, what the kernels between cost is not their work but the time from one to the next. Every block norms the
// rows anew. The same bits as norm_rows(), matmul() and store_rows() or activate() one after another.
namespace efimd::kernels {

/// Two rows of a quantized matrix against up to kTile normed rows, by a warp. Its first weights are on their way from here on,
/// the others on the way into the L2 cache.
template <Packed kType>
class TwoRows {
 public:
  __device__ __forceinline__ TwoRows(const u32* w, u32 first, u32 second, const RowLayout& layout,
                                     u32 groups)
      : layout_(layout), groups_(groups) {
    rows_[0] = w + static_cast<size_t>(first) * layout.row_words;
    rows_[1] = w + static_cast<size_t>(second) * layout.row_words;
    if (threadIdx.x < groups) {
      first_[0].load(rows_[0], layout, threadIdx.x);
      first_[1].load(rows_[1], layout, threadIdx.x);
    }
    fetch_row(rows_[0], layout.row_words);
    fetch_row(rows_[1], layout.row_words);
  }

  /// What the rows give for token t of `count`, in lane t.
  template <u32 kTile>
  __device__ __forceinline__ float2 times(const NormedRows<kTile>& x, u32 count) const {
    const TileTokens<kTile> tokens(count, groups_);
    float upper[kTile] = {}, lower[kTile] = {};
    if (threadIdx.x < groups_) {
      add_group<kType, kTile>(first_[0], x.quants, x.scales, threadIdx.x, tokens, upper);
      add_group<kType, kTile>(first_[1], x.quants, x.scales, threadIdx.x, tokens, lower);
    }
    for (u32 group = threadIdx.x + 32; group < groups_; group += 32) {
      WeightGroup<kType> weights[2];
      weights[0].load(rows_[0], layout_, group);
      weights[1].load(rows_[1], layout_, group);
      add_group<kType, kTile>(weights[0], x.quants, x.scales, group, tokens, upper);
      add_group<kType, kTile>(weights[1], x.quants, x.scales, group, tokens, lower);
    }
    float2 own = make_float2(0, 0);
#pragma unroll
    for (u32 t = 0; t < kTile; ++t) {
      if (!tokens.has(t)) break;
      const float2 sums = make_float2(sum_of_classes(upper[t]), sum_of_classes(lower[t]));
      if (threadIdx.x == t) own = sums;
    }
    return own;
  }

 private:
  RowLayout layout_;
  u32 groups_;
  const u32* rows_[2];
  WeightGroup<kType> first_[2];
};

// Norm, product with the matrix of queries, keys and values (+ bias), RoPE, and K and V into their pages.
//   w  part of a packed matrix [(H + 2 Hk) E][D]   x [T][D] f32   norm [D]   bias [(H + 2 Hk) E]
//   qkv, turns, kv of Kv::kF16, places as of store_rows(), of qkv only queries are written
//   grid (T / kTile, N / 2 / kNormedWarps), block (32, kNormedWarps): a warp for two rows that RoPE turns as one, and a tile
//   D % 32 == 0, <= kNormedColsMax
//   must read the part once for each kTile tokens: bound by bandwidth, and where the part is small by the chain of the
//   kernel's steps.
template <Packed kType, u32 kTile>
__device__ __forceinline__ void norm_heads(const u32* w, const float* x, const float* norm,
                                           const float* bias, float* qkv, const float* turns,
                                           u32* kv, const u32* places, const HeadsSizes& s) {
  __shared__ NormedRows<kTile> normed;
  const u32 pair = blockIdx.y * kNormedWarps + threadIdx.y, pairs = s.rows / 2;
  const HeadPair of(pair < pairs ? pair : pairs - 1, s);
  const u32 rows[2] = {of.row(of.first, s), of.row(of.second, s)};
  const TwoRows<kType> weights(w, rows[0] - s.first, rows[1] - s.first, s.row, s.cols / 32);
  await_operands();
  const u32 token = blockIdx.x * kTile;
  const u32 count = s.tokens - token < kTile ? s.tokens - token : kTile;
  normed.fill(x + static_cast<size_t>(token) * s.cols, norm, count, s.cols, s.epsilon);
  if (pair >= pairs) return;  // whole warps
  float2 values = weights.times(normed, count);
  if (threadIdx.x >= count) return;
  if (s.biased != 0) values = make_float2(values.x + bias[rows[0]], values.y + bias[rows[1]]);
  store_pair(of, values, token + threadIdx.x, qkv, turns, kv, places, s);
}

// Norm, product with the matrix of gates and values (+ bias), and activation(gate) * up * scale.
//   w  a packed matrix [2 F][D]   x [T][D] f32   norm [D]   bias [2 F]   result [T][F] of s.forms
//   grid (T / kTile, F / kNormedGates), block (32, kNormedWarps): a warp for a gate and its value, then for a second one
//   D % 32 == 0, <= kNormedColsMax; F % 32 == 0
//   must read the matrix once for each kTile tokens: bound by bandwidth.
template <Packed kType, u32 kTile>
__device__ __forceinline__ void norm_gates(const u32* w, const float* x, const float* norm,
                                           const float* bias, const Result& result,
                                           const GatesSizes& s) {
  __shared__ NormedRows<kTile> normed;
  __shared__ float active[kTile][kNormedGates];
  const u32 first = blockIdx.y * kNormedGates + threadIdx.y, groups = s.cols / 32;
  const TwoRows<kType> weights(w, first, s.width + first, s.row, groups);
  await_operands();
  const u32 token = blockIdx.x * kTile;
  const u32 count = s.tokens - token < kTile ? s.tokens - token : kTile;
  normed.fill(x + static_cast<size_t>(token) * s.cols, norm, count, s.cols, s.epsilon);
  const auto activate = [&](const TwoRows<kType>& rows, u32 gate) {
    float2 values = rows.times(normed, count);
    if (threadIdx.x >= count) return;
    if (s.biased != 0) values = make_float2(values.x + bias[gate], values.y + bias[s.width + gate]);
    active[threadIdx.x][gate % kNormedGates] = activated(values.x, s.gelu) * values.y * s.scale;
  };
  activate(weights, first);
#pragma unroll
  for (u32 gate = first + kNormedWarps; gate < first + kNormedGates; gate += kNormedWarps)
    activate(TwoRows<kType>(w, gate, s.width + gate, s.row, groups), gate);
  __syncthreads();
  if (threadIdx.y >= count) return;  // whole warps
  write_form(
      result, s.forms,
      static_cast<size_t>(token + threadIdx.y) * s.width + blockIdx.y * kNormedGates + threadIdx.x,
      active[threadIdx.y][threadIdx.x]);
}

}  // namespace efimd::kernels
