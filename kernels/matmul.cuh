#pragma once

#include "kernels/outputs.cuh"
#include "kernels/weights.cuh"

namespace efimd::kernels {

// The sum of the lanes' sums, the same bits in every lane. Fours of lanes are added as (0 + 1) + (2
// + 3), then these in order, on zero. A kernel that walks a whole row meets the lanes' classes of
// groups one after another. So it must keep only four sums and the total (matmul_tiles.cuh). Eight
// independent shuffles: no later than a tree's last three.
__device__ __forceinline__ float sum_of_classes(float value) {
  value += __shfl_xor_sync(kWholeWarp, value, 1);
  value += __shfl_xor_sync(kWholeWarp, value, 2);
  float total = 0;
#pragma unroll
  for (int four = 0; four < 8; ++four) total += __shfl_sync(kWholeWarp, value, 4 * four);
  return total;
}

// A group of 32 weights against the same group of a token.
template <Packed kType>
__device__ __forceinline__ void add_group(const typename Weights<kType>::Words& of_row,
                                          const u32* x, const float2* scales, u32 group,
                                          float& sum) {
  using Of = Weights<kType>;
  u32 quants[8];
  Of::unpack(of_row, quants);
  const auto weight = Of::scales(Of::scale_bits(of_row, group));
  const uint4 first = *reinterpret_cast<const uint4*>(x + group * 8);
  const uint4 second = *reinterpret_cast<const uint4*>(x + group * 8 + 4);
  int low = __dp4a(static_cast<int>(quants[0]), static_cast<int>(first.x), 0);
  low = __dp4a(static_cast<int>(quants[1]), static_cast<int>(first.y), low);
  low = __dp4a(static_cast<int>(quants[2]), static_cast<int>(first.z), low);
  low = __dp4a(static_cast<int>(quants[3]), static_cast<int>(first.w), low);
  int high = __dp4a(static_cast<int>(quants[4]), static_cast<int>(second.x), 0);
  high = __dp4a(static_cast<int>(quants[5]), static_cast<int>(second.y), high);
  high = __dp4a(static_cast<int>(quants[6]), static_cast<int>(second.z), high);
  high = __dp4a(static_cast<int>(quants[7]), static_cast<int>(second.w), high);
  const float2 scale = scales[group];
  // Joined by name, so that no compiler joins them in one kernel and not in another.
  if constexpr (Of::kHalves) {
    sum = fmaf(static_cast<float>(low), weight.low * scale.x, sum);
    sum = fmaf(static_cast<float>(high), weight.high * scale.x, sum);
  } else {
    sum = fmaf(static_cast<float>(low + high), weight.low * scale.x, sum);
  }
  if constexpr (Of::kMinimum) sum = fmaf(-weight.minimum, scale.y, sum);
}

/// Up to kTile tokens of a step, and where in x their rows begin.
template <u32 kTile>
struct TileTokens {
  u32 count;
  u32 begin[kTile];

  __device__ __forceinline__ TileTokens(u32 first, u32 width, const MatmulSizes& s)
      : count(s.tokens - first) {
#pragma unroll
    for (u32 t = 0; t < kTile; ++t) begin[t] = (first + t) / s.share * width;
  }
  /// For a tile of one this is known when the kernel is compiled, so no branch delays the next
  /// loads.
  __device__ __forceinline__ bool has(u32 t) const { return kTile == 1 || t < count; }
};

// Eight weights of a float type, or what is left of the row.
template <Packed kType, u32 kTile>
__device__ __forceinline__ void add_eight(const u32* row, const float* x, const MatmulSizes& s,
                                          u32 k, const TileTokens<kTile>& tokens,
                                          float (&sums)[kTile]) {
  using Of = Weights<kType>;
  float weights[8];
  Of::load_8(row, k, weights);  // a row is padded to whole loads
  const u32 last = s.cols - k < 8 ? s.cols - k : 8;
#pragma unroll
  for (u32 t = 0; t < kTile; ++t) {
    if (!tokens.has(t)) break;
    const float* from = x + tokens.begin[t] + k;
    if (s.cols % 8 == 0) {
      const float4 first = *reinterpret_cast<const float4*>(from);
      const float4 second = *reinterpret_cast<const float4*>(from + 4);
      const float values[8] = {first.x,  first.y,  first.z,  first.w,
                               second.x, second.y, second.z, second.w};
#pragma unroll
      for (u32 i = 0; i < 8; ++i) sums[t] = fmaf(weights[i], values[i], sums[t]);
    } else {
      for (u32 i = 0; i < last; ++i) sums[t] = fmaf(weights[i], from[i], sums[t]);
    }
  }
}

// Rows of a weight matrix times rows of inputs: out[t][first + n] = (or +=) w[n] . x[t / share] (+ bias[first + n]).
//   w  part of a packed matrix [N][K]; with experts [experts][N][K]   x [T / share][K]: f32 for float types, for
//   quantized ones four quants a word   scales [T / share][K/32]   bias [..]   experts [T]   result [T][out_stride]
//   grid (T / kTile, min(N, 32768) / kMatmulWarps, N / 32768), block (32, kMatmulWarps): a warp for each row and tile, tiles
//   of the same rows beside each other, so that the cache has the rows for all but the first; lane l takes groups l, l + 32, ... of 32 weights (float types: of 8)
//   must read the part once for each kTile tokens: bound by bandwidth, judge it in GB/s.  Quantized: one token, or as many
//   as experts have; products of a group in integers, exact; then f32. A token's sum has the same order in the kernels that
//   take this one's place: matmul_few.cuh for some tokens, matmul_tiles.cuh for prompts.
template <Packed kType, u32 kTile>
__device__ __forceinline__ void matmul(const u32* w, const u32* x, const float2* scales,
                                       const float* bias, const u32* experts, float* result,
                                       const MatmulSizes& s) {
  using Of = Weights<kType>;
  static_assert(!Of::kQuantized || kTile == 1);
  const u32 n = blockIdx.z * kMatmulRowsMax + blockIdx.y * kMatmulWarps + threadIdx.y;
  const u32 lane = threadIdx.x;
  const u32 token = blockIdx.x * kTile;
  if (n >= s.rows) return;  // whole warps: the sums below have all their lanes
  const size_t index = s.experts != 0 ? static_cast<size_t>(experts[token]) * s.rows + n : n;
  const u32* row = w + index * s.row.row_words;
  if constexpr (Of::kQuantized) {
    const u32 groups = s.cols / 32;
    const size_t begin = static_cast<size_t>(token / s.share) * groups;
    float sum = 0;
#pragma unroll 2
    for (u32 group = lane; group < groups; group += 32) {
      add_group<kType>(Of::words(row, s.row, group), x + begin * 8, scales + begin, group, sum);
    }
    sum = sum_of_classes(sum);
    if (lane == 0) write_product(sum, bias, result, n, token, s);
  } else {
    const TileTokens<kTile> tokens(token, s.cols, s);
    float sums[kTile] = {};
#pragma unroll 4
    for (u32 k = lane * 8; k < s.cols; k += 256)
      add_eight<kType, kTile>(row, reinterpret_cast<const float*>(x), s, k, tokens, sums);
#pragma unroll
    for (u32 t = 0; t < kTile; ++t) {
      if (!tokens.has(t)) break;
      const float sum = warp_sum(sums[t]);
      if (lane == 0) write_product(sum, bias, result, n, token + t, s);
    }
  }
}

}  // namespace efimd::kernels
