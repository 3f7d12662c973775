#pragma once

#include "kernels/activate.cuh"
#include "kernels/head_pair.cuh"
#include "kernels/matmul_halves.cuh"
#include "kernels/normed_rows.cuh"

// As normed_token.cuh, with f16 and bf16 weights: the bits of norm_rows(), matmul_halves() and store_rows() or activate() one
// after another.
namespace efimd::kernels {

/// The RMS norm of a row in the shared memory of a block of kHalvesWarps warps, in the weights'
/// type, and the block's part of its products.
template <Packed kType, u32 kSixteens>
struct NormedHalves {
  alignas(16) u32 words[kNormedColsMax / 2];
  float parts[kNormBlock / 32];                   ///< sums of squares
  BlockSums<kHalvesWarps, 1> classes[kSixteens];  ///< the token in each column
  static_assert(32 * kHalvesWarps == kNormBlock);

  // x, weight [cols] f32   cols % 32 == 0; by the whole block
  __device__ __forceinline__ void fill(const float* x, const float* weight, u32 cols,
                                       float epsilon) {
    const u32 own = threadIdx.y * 32 + threadIdx.x;
    sum_squares(x, cols, own, parts);
    __syncthreads();
    const float scale = scale_of_parts(parts, cols, epsilon);
    const auto half = [&](u32 k) {
      const float value = x[k] * scale * weight[k];
      return kType == Packed::kF16 ? to_half(value) : float_to_bfloat(value);
    };
    for (u32 i = own; i < cols / 2; i += kNormBlock)
      words[i] = half(2 * i) | half(2 * i + 1) << 16U;
    __syncthreads();
  }

  /// Of rows g and g + 8, lane 4 g + c, which begin at `upper` and `lower`, this warp's class.
  __device__ __forceinline__ void multiply(const u32* upper, const u32* lower, u32 cols,
                                           u32 sixteen) {
    const u32 c = threadIdx.x % 4;
    const u32* const token[1] = {words + 4 * c};
    float sums[1][4] = {};
    add_class<kType>(upper + 4 * c, lower + 4 * c, token, cols, sums);
    classes[sixteen].put(sums);
  }

  /// The product of a row of these 16. Call it after a barrier.
  __device__ __forceinline__ float product(u32 sixteen, u32 row) const {
    return classes[sixteen].sum(0, row);
  }
};

// norm_heads() of one token.
//   w of f16 or bf16; the others as there; D % 32 == 0, <= kNormedColsMax
//   grid (1, N / kHalvesRows), block (32, kHalvesWarps): a block for eight pairs, a warp for each class of chunks
//   must read the part once: bound by bandwidth.
template <Packed kType>
__device__ __forceinline__ void norm_heads_halves(const u32* w, const float* x, const float* norm,
                                                  const float* bias, float* qkv,
                                                  const float* rope_table, u32* kv,
                                                  const u32* places, const HeadsSizes& s) {
  constexpr u32 kPairs = kHalvesRows / 2;
  __shared__ NormedHalves<kType, 1> normed;
  const u32 first = blockIdx.y * kPairs, pairs = s.rows / 2;
  const auto row = [&](u32 pair, bool second) {
    const HeadPair of(at_most(pair, pairs), s);
    return w + static_cast<size_t>(of.row(second ? of.second : of.first, s) - s.first) *
                   s.row.row_words;
  };
  fetch_rows<2>([&](u32 i) { return row(first + threadIdx.y, i != 0); }, s.row.row_words);
  fetch_norm(norm, s.cols);
  await_operands();
  normed.fill(x, norm, s.cols, s.epsilon);
  const u32 own = first + threadIdx.x / 4;
  normed.multiply(row(own, false), row(own, true), s.cols, 0);
  __syncthreads();
  const u32 pair = first + threadIdx.x;
  if (threadIdx.y != 0 || threadIdx.x >= kPairs || pair >= pairs) return;
  store_pair(HeadPair(pair, s),
             make_float2(normed.product(0, threadIdx.x), normed.product(0, kPairs + threadIdx.x)),
             bias, 0, qkv, rope_table, kv, places, s);
}

// norm_gates() of one token.
//   w of f16 or bf16; the others as there; D % 32 == 0, <= kNormedColsMax; F % kHalvesRows == 0; no quants in s.forms
//   grid (1, F / kHalvesRows), block (32, kHalvesWarps): a block for eight gates and their values, twice
//   must read the matrix once: bound by bandwidth.
template <Packed kType>
__device__ __forceinline__ void norm_gates_halves(const u32* w, const float* x, const float* norm,
                                                  const float* bias, const Result& result,
                                                  const GatesSizes& s) {
  constexpr u32 kGates = kHalvesRows / 2, kTwice = 2;
  __shared__ NormedHalves<kType, kTwice> normed;
  const auto row = [&](u32 index) { return w + static_cast<size_t>(index) * s.row.row_words; };
  const u32 first = blockIdx.y * kTwice * kGates;
  fetch_rows<2 * kTwice>(
      [&](u32 i) { return row(first + threadIdx.y + i / 2 * kGates + i % 2 * s.width); },
      s.row.row_words);
  fetch_norm(norm, s.cols);
  await_operands();
  normed.fill(x, norm, s.cols, s.epsilon);
#pragma unroll
  for (u32 i = 0; i < kTwice; ++i) {
    const u32 gate = first + i * kGates + threadIdx.x / 4;
    normed.multiply(row(gate), row(s.width + gate), s.cols, i);
  }
  __syncthreads();
  if (threadIdx.y != 0 || threadIdx.x >= kTwice * kGates) return;
  const u32 i = threadIdx.x / kGates, of = threadIdx.x % kGates, gate = first + threadIdx.x;
  const float2 values = make_float2(normed.product(i, of), normed.product(i, kGates + of));
  write_form(result, s.forms, gate, gated(values, bias, gate, s));
}

}  // namespace efimd::kernels
