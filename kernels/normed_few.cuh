#pragma once

#include "kernels/activate.cuh"
#include "kernels/head_pair.cuh"
#include "kernels/matmul_few.cuh"
#include "kernels/normed_rows.cuh"

// As normed_token.cuh, of up to eight tokens: the bits of norm_rows(), matmul_few() and store_rows() or activate() one after
// another.
namespace efimd::kernels {

// norm_heads() of T <= 8 tokens.
//   operands as there
//   grid (1, N / kFewRows), block (32, kFewWarps): a block for eight pairs
//   must read the part once: bound by bandwidth.
template <Packed kType>
__device__ __forceinline__ void norm_heads_few(const u32* w, const float* x, const float* norm,
                                               const float* bias, float* qkv,
                                               const float* rope_table, u32* kv, const u32* places,
                                               const HeadsSizes& s) {
  constexpr u32 kPairs = kFewRows / 2;
  __shared__ NormedRows<kTokensOfTile, kFewWarps> normed;
  __shared__ BlockSums<kFewWarps, 1> fours;
  const u32 first = blockIdx.y * kPairs, pairs = s.rows / 2, groups = s.cols / 32;
  const auto row = [&](const HeadPair& of, u32 element) {
    return w + static_cast<size_t>(of.row(element, s) - s.first) * s.row.row_words;
  };
  const HeadPair own(at_most(first + threadIdx.x / 4, pairs), s);
  const HeadPair fetched(at_most(first + threadIdx.y, pairs), s);
  fetch_rows<2>([&](u32 i) { return row(fetched, i == 0 ? fetched.first : fetched.second); },
                s.row.row_words);
  fetch_norm(norm, s.cols);
  await_operands();
  normed.fill(x, norm, s.cols, s.tokens, s.epsilon);
  const FewTokens<1> tokens(normed.quants, normed.scales, 0, s.tokens, normed.stride(s.cols),
                            groups);
  float sums[1][4];
  multiply_few<kType>(row(own, own.first), row(own, own.second), s.row, groups, tokens, sums);
  fours.put(sums);
  __syncthreads();
  const u32 thread = threadIdx.y * 32 + threadIdx.x, i = thread % kPairs, t = thread / kPairs;
  if (t >= s.tokens || first + i >= pairs) return;
  store_pair(HeadPair(first + i, s), make_float2(fours.sum(t, i), fours.sum(t, kPairs + i)), bias,
             t, qkv, rope_table, kv, places, s);
}

// norm_gates() of T <= 8 tokens.
//   operands as there
//   grid (1, F / kNormedGates), block (32, kFewWarps): a block for eight gates and their values, four times
//   must read the matrix once: bound by bandwidth.
template <Packed kType>
__device__ __forceinline__ void norm_gates_few(const u32* w, const float* x, const float* norm,
                                               const float* bias, const Result& result,
                                               const GatesSizes& s) {
  constexpr u32 kGates = kFewRows / 2;
  __shared__ NormedRows<kTokensOfTile, kFewWarps> normed;
  __shared__ BlockSums<kFewWarps, 1> fours;
  __shared__ float active[kTokensOfTile][kNormedGates];
  const u32 first = blockIdx.y * kNormedGates, groups = s.cols / 32;
  const auto row = [&](u32 index) { return w + static_cast<size_t>(index) * s.row.row_words; };
  const u32 own = first + threadIdx.x / 4;
  fetch_rows<2 * kNormedGates / kFewWarps>(
      [&](u32 i) { return row(first + threadIdx.y + i / 2 * kFewWarps + i % 2 * s.width); },
      s.row.row_words);
  fetch_norm(norm, s.cols);
  await_operands();
  normed.fill(x, norm, s.cols, s.tokens, s.epsilon);
  const FewTokens<1> tokens(normed.quants, normed.scales, 0, s.tokens, normed.stride(s.cols),
                            groups);
  const u32 thread = threadIdx.y * 32 + threadIdx.x, i = thread % kGates, t = thread / kGates;
  for (u32 at = 0; at < kNormedGates; at += kGates) {
    float sums[1][4];
    multiply_few<kType>(row(own + at), row(s.width + own + at), s.row, groups, tokens, sums);
    fours.put(sums);
    __syncthreads();
    if (t < s.tokens)
      active[t][at + i] =
          gated(make_float2(fours.sum(t, i), fours.sum(t, kGates + i)), bias, first + at + i, s);
    __syncthreads();  // nobody reads these sums any more
  }
  if (threadIdx.y >= s.tokens) return;  // whole warps
  write_form(result, s.forms, static_cast<size_t>(threadIdx.y) * s.width + first + threadIdx.x,
             active[threadIdx.y][threadIdx.x]);
}

}  // namespace efimd::kernels
