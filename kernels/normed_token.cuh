#pragma once

#include "kernels/activate.cuh"
#include "kernels/head_pair.cuh"
#include "kernels/matmul.cuh"
#include "kernels/normed_rows.cuh"
#include "kernels/overlap.cuh"

// Products of one token with quantized weights, in one kernel with the norm before it and the
// operation after it. At few tokens, the kernels between cost not their work but the time from one
// to the next. Every block norms the row anew. The same bits as norm_rows(), matmul() and
// store_rows() or activate() one after another.
namespace efimd::kernels {

/// Two rows of a quantized matrix against a normed row, by a warp. Its first weights are on their way from here on.
template <Packed kType>
class TwoRows {
  using Of = Weights<kType>;

 public:
  __device__ __forceinline__ TwoRows(const u32* w, u32 first, u32 second, const RowLayout& layout,
                                     u32 groups)
      : layout_(layout), groups_(groups) {
    rows_[0] = w + static_cast<size_t>(first) * layout.row_words;
    rows_[1] = w + static_cast<size_t>(second) * layout.row_words;
    if (threadIdx.x >= groups) return;
    first_[0] = Of::words(rows_[0], layout, threadIdx.x);
    first_[1] = Of::words(rows_[1], layout, threadIdx.x);
  }

  /// The products of both, in every lane.
  __device__ __forceinline__ float2 times(const u32* x, const float2* scales) const {
    float2 sums = make_float2(0, 0);
    if (threadIdx.x < groups_) {
      add_group<kType>(first_[0], x, scales, threadIdx.x, sums.x);
      add_group<kType>(first_[1], x, scales, threadIdx.x, sums.y);
    }
    for (u32 group = threadIdx.x + 32; group < groups_; group += 32) {
      const auto of_first = Of::words(rows_[0], layout_, group);
      const auto of_second = Of::words(rows_[1], layout_, group);
      add_group<kType>(of_first, x, scales, group, sums.x);
      add_group<kType>(of_second, x, scales, group, sums.y);
    }
    return make_float2(sum_of_classes(sums.x), sum_of_classes(sums.y));
  }

 private:
  RowLayout layout_;
  u32 groups_;
  const u32* rows_[2];
  typename Of::Words first_[2];
};

// Norm, product with the matrix of queries, keys and values (+ bias), RoPE, and K and V into their pages.
//   w  part of a packed matrix [(H + 2 Hk) E][D]   x [T][D] f32   norm [D]   bias [(H + 2 Hk) E]
//   qkv, rope_table, kv of Kv::kF16, places as of store_rows(), of qkv only queries are written
//   T == 1; grid (1, N / 2 / kNormedWarps), block (32, kNormedWarps): a warp for two rows that RoPE rotates as one
//   D % 32 == 0, <= kNormedColsMax
//   must read the part once: bound by bandwidth, and where the part is small by the chain of the kernel's steps.
template <Packed kType>
__device__ __forceinline__ void norm_heads(const u32* w, const float* x, const float* norm,
                                           const float* bias, float* qkv, const float* rope_table,
                                           u32* kv, const u32* places, const HeadsSizes& s) {
  __shared__ NormedRows<1, kNormedWarps> normed;
  const u32 index = blockIdx.y * kNormedWarps + threadIdx.y, pairs = s.rows / 2;
  const HeadPair pair(at_most(index, pairs), s);
  const u32 rows[2] = {pair.row(pair.first, s) - s.first, pair.row(pair.second, s) - s.first};
  fetch_rows<2>([&](u32 i) { return w + static_cast<size_t>(rows[i]) * s.row.row_words; },
                s.row.row_words);
  fetch_norm(norm, s.cols);
  const TwoRows<kType> weights(w, rows[0], rows[1], s.row, s.cols / 32);
  await_operands();
  normed.fill(x, norm, s.cols, 1, s.epsilon);
  if (index >= pairs) return;  // whole warps
  const float2 values = weights.times(normed.quants, normed.scales);
  if (threadIdx.x == 0) store_pair(pair, values, bias, 0, qkv, rope_table, kv, places, s);
}

// Norm, product with the matrix of gates and values (+ bias), and activation(gate) * up * scale.
//   w  a packed matrix [2 F][D]   x [T][D] f32   norm [D]   bias [2 F]   result [T][F] of s.forms
//   T == 1; grid (1, F / kNormedGates), block (32, kNormedWarps): a warp for a gate and its value, then for a second one
//   D % 32 == 0, <= kNormedColsMax; F % kNormedGates == 0
//   must read the matrix once: bound by bandwidth.
template <Packed kType>
__device__ __forceinline__ void norm_gates(const u32* w, const float* x, const float* norm,
                                           const float* bias, const Result& result,
                                           const GatesSizes& s) {
  __shared__ NormedRows<1, kNormedWarps> normed;
  __shared__ float active[kNormedGates];
  const u32 first = blockIdx.y * kNormedGates + threadIdx.y, groups = s.cols / 32;
  fetch_rows<4>(
      [&](u32 i) {
        const u32 gate = first + i / 2 * kNormedWarps;
        return w + static_cast<size_t>(gate + i % 2 * s.width) * s.row.row_words;
      },
      s.row.row_words);
  fetch_norm(norm, s.cols);
  const TwoRows<kType> weights(w, first, s.width + first, s.row, groups);
  await_operands();
  normed.fill(x, norm, s.cols, 1, s.epsilon);
  const auto activate = [&](const TwoRows<kType>& rows, u32 gate) {
    const float2 values = rows.times(normed.quants, normed.scales);
    if (threadIdx.x == 0) active[gate % kNormedGates] = gated(values, bias, gate, s);
  };
  activate(weights, first);
#pragma unroll
  for (u32 gate = first + kNormedWarps; gate < first + kNormedGates; gate += kNormedWarps)
    activate(TwoRows<kType>(w, gate, s.width + gate, s.row, groups), gate);
  __syncthreads();
  if (threadIdx.y != 0) return;  // whole warps
  write_form(result, s.forms, blockIdx.y * kNormedGates + threadIdx.x, active[threadIdx.x]);
}

}  // namespace efimd::kernels
