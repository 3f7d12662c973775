#pragma once

#include "kernels/copy_async.cuh"
#include "kernels/group_products.cuh"
#include "kernels/outputs.cuh"

// Products of quantized weights with the tokens of a prompt, on the tensor cores.
//
// Why it should be faster. A warp's instructions for a row, a token and a group of 32 (nvcc's PTX for compute capability 8.0,
// Q8_0 and Q4_K): matmul() 1.27 and 2.23, matmul_few() 0.53 and 0.70, this 0.41 and 0.49. So it needs a third of matmul()'s or
// less. Against matmul_few() it is 1.3 and 1.4; that also reads the weights four times as often out of the cache. Tiles of 64
// would save an eighth more, and were deleted.
namespace efimd::kernels {

/// Four groups of the rows and tokens of a tile, in shared memory. The weights are packed as they are; strides are such
/// that the lanes of a warp read other banks.
template <Packed kType>
struct TileStage {
  using Of = Weights<kType>;
  static constexpr u32 kLowStride = Of::kLowWords == 8 ? 40 : 20;
  static constexpr u32 kHighStride = Of::kHighWords == 2 ? 12 : 4;
  static constexpr u32 kXStride = Of::kHalves ? 36 : 40;

  alignas(16) u32 low[kTileRows * kLowStride];
  alignas(16) u32 high[Of::kHighWords == 0 ? 4 : kTileRows * kHighStride];
  alignas(16) u32 x[kTileRows * kXStride];
  float2 scales[4][kTileRows];  ///< of a group; second: of its last half, or its minimum
  float x_scales[4][kTileRows];
  float x_sums[Of::kMinimum ? 4 : 1][kTileRows];  ///< only of types with a minimum
};

/// One block's part of a product: kTileRows rows and as many tokens. Rows and tokens past the last
/// repeat it.
template <Packed kType>
struct Tile {
  using Of = Weights<kType>;
  using Stage = TileStage<kType>;
  static constexpr u32 kThreads = 4 * kTileRows;
  /// Eights of tokens that a warp multiplies its 16 rows with.
  static constexpr u32 kColumns = kTileRows / 16;

  const u32* w;
  const u32* x;
  const float2* x_scales;
  const MatmulSizes& s;
  u32 groups;
  u32 first_row, first_token;

  static __device__ __forceinline__ u32 thread() { return threadIdx.y * 32 + threadIdx.x; }
  __device__ __forceinline__ const u32* row(u32 index) const {
    const u32 of_part = first_row + index < s.rows ? first_row + index : s.rows - 1;
    return w + static_cast<size_t>(of_part) * s.row.row_words;
  }
  __device__ __forceinline__ size_t group_of_x(u32 index, u32 group) const {
    const u32 token = first_token + index < s.tokens ? first_token + index : s.tokens - 1;
    return static_cast<size_t>(token) * groups + group;
  }

  /// Starts the copies of four groups' quants.
  __device__ __forceinline__ void copy_quants(Stage& to, u32 group) const {
    // A row's four groups take 16 * kLowWords bytes, a token's 128.
#pragma unroll
    for (u32 step = 0; step < Of::kLowWords / 4; ++step) {
      const u32 i = step * kThreads + thread();
      const u32 index = i / Of::kLowWords, word = i % Of::kLowWords * 4;
      if (group + word / Of::kLowWords < groups)
        copy_16(to.low + index * Stage::kLowStride + word,
                row(index) + group * Of::kLowWords + word);
    }
    if constexpr (Of::kHighWords != 0) {
      // May pass the plane's end, not the row's: rows are whole fours of words.
      if (const u32 i = thread(); i < kTileRows * Of::kHighWords) {
        const u32 index = i / Of::kHighWords, word = i % Of::kHighWords * 4;
        copy_16(to.high + index * Stage::kHighStride + word,
                row(index) + s.row.high_at + group * Of::kHighWords + word);
      }
    }
#pragma unroll
    for (u32 step = 0; step < 2; ++step) {
      const u32 i = step * kThreads + thread();
      const u32 index = i / 8, word = i % 8 * 4;
      if (group + word / 8 < groups)
        copy_16(to.x + index * Stage::kXStride + word, x + group_of_x(index, group) * 8 + word);
    }
  }

  /// Scales on their way through a thread's registers: of one row and one token, in one group.
  struct Scales {
    typename Of::ScaleBits of_row;
    float2 of_token;
  };
  __device__ __forceinline__ Scales load_scales(u32 group) const {
    const u32 index = thread() / 4, own = group + thread() % 4;
    if (own >= groups) return {};
    return {Of::scale_bits(row(index), s.row, own), x_scales[group_of_x(index, own)]};
  }
  static __device__ __forceinline__ void store_scales(Stage& to, const Scales& scales) {
    const u32 index = thread() / 4, own = thread() % 4;
    to.scales[own][index] = row_scales<kType>(scales.of_row);
    to.x_scales[own][index] = scales.of_token.x;
    if constexpr (Of::kMinimum) to.x_sums[own][index] = scales.of_token.y;
  }
};

/// The sums of a warp's outputs: 16 rows and half of the tile's tokens, eight by eight, each laid
/// out as in mma.cuh.
using TileSums = float[kTileRows / 16][4];

// Adds one group of a stage to the sums of its class.
template <Packed kType>
__device__ __forceinline__ void add_group_of_tile(const TileStage<kType>& from, u32 group,
                                                  TileSums& sums) {
  using Of = Weights<kType>;
  using Stage = TileStage<kType>;
  const u32 first_row = threadIdx.y / 2 * 16, first_token = threadIdx.y % 2 * (kTileRows / 2);
  const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
  u32 a[4];
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    const u32 row = first_row + g + 8 * half;
    row_quads<kType>(from.low + row * Stage::kLowStride + group * Of::kLowWords,
                     from.high + row * Stage::kHighStride + group * Of::kHighWords, a[half],
                     a[2 + half]);
  }
  const float2 of_rows[2] = {from.scales[group][first_row + g],
                             from.scales[group][first_row + g + 8]};
#pragma unroll
  for (u32 column = 0; column < kTileRows / 16; ++column) {
    const u32 token = first_token + 8 * column;
    u32 b[2];
    token_quads<kType>(from.x + (token + g) * Stage::kXStride + group * 8, b);
    const float2 of_tokens = *reinterpret_cast<const float2*>(&from.x_scales[group][token + 2 * c]);
    float2 of_sums = make_float2(0, 0);
    if constexpr (Of::kMinimum)
      of_sums = *reinterpret_cast<const float2*>(&from.x_sums[group][token + 2 * c]);
    add_products<kType>(a, b, of_rows, of_tokens, of_sums, sums[column]);
  }
}

// The place in a row after four groups. A walk goes through a class and its neighbours by steps of
// 32 groups, then on to the next four classes.
__device__ __forceinline__ u32 groups_behind(u32 group, u32 groups) {
  if (group + 32 < groups) return group + 32;
  const u32 next = group % 32 + 4;
  return next < 32 && next < groups ? next : groups;
}

// Rows of quantized weights times the rows of a prompt, on the tensor cores: matmul() without experts, bit for bit.
//   operands as of matmul();  s.share == 1, s.experts == 0
//   grid (T / kTileRows, min(N, 32768) / kTileRows, N / 32768), block (32, kTileRows / 8): a block for kTileRows rows and tokens, a warp
//   for 16 rows and half of the tokens
//   must do 2 N K T operations, and read the part once for each kTileRows tokens and the tokens once for each kTileRows rows:
//   judge it in TFLOP/s. Numerics as of matmul(). Products of a group are summed in integers,
//   exactly. Classes of groups, those 32 apart, are summed in f32, in order; then fours of classes
//   and the total as in sum_of_classes().
// f16 and bf16 have matmul_halves.cuh; f32 weights stay with matmul(), because tensor cores would round them.
template <Packed kType>
__device__ __forceinline__ void matmul_tiles(const u32* w, const u32* x, const float2* scales,
                                             const float* bias, float* result,
                                             const MatmulSizes& s) {
  using Part = Tile<kType>;
  __shared__ typename Part::Stage stages[2];
  const Part tile{w,
                  x,
                  scales,
                  s,
                  s.cols / 32,
                  blockIdx.z * kMatmulRowsMax + blockIdx.y * kTileRows,
                  blockIdx.x * kTileRows};
  if (tile.first_row >= s.rows) return;  // whole blocks
  float classes[4][Part::kColumns][4] = {};
  float totals[Part::kColumns][4] = {};

  tile.copy_quants(stages[0], 0);
  close_batch();
  Part::store_scales(stages[0], tile.load_scales(0));
  u32 now = 0;
  for (u32 group = 0; group < tile.groups; now = 1 - now) {
    const u32 next = groups_behind(group, tile.groups);
    if (next < tile.groups) tile.copy_quants(stages[1 - now], next);
    close_batch();
    const auto next_scales = tile.load_scales(next);
    wait_for_batches<1>();
    __syncthreads();  // all of this stage is there
#pragma unroll
    for (u32 i = 0; i < 4; ++i)
      if (group + i < tile.groups) add_group_of_tile<kType>(stages[now], i, classes[i]);
    Part::store_scales(stages[1 - now], next_scales);
    if (group + 32 >= tile.groups) {  // the last of these classes
#pragma unroll
      for (u32 i = 0; i < 4 * Part::kColumns; ++i) {
        const u32 column = i / 4, at = i % 4;
        totals[column][at] += (classes[0][column][at] + classes[1][column][at]) +
                              (classes[2][column][at] + classes[3][column][at]);
        for (auto& of_class : classes) of_class[column][at] = 0;
      }
    }
    __syncthreads();  // nobody reads this stage any more
    group = next;
  }

  const u32 row = tile.first_row + threadIdx.y / 2 * 16 + threadIdx.x / 4;
  const u32 token = tile.first_token + threadIdx.y % 2 * (kTileRows / 2) + threadIdx.x % 4 * 2;
#pragma unroll
  for (u32 i = 0; i < 4 * Part::kColumns; ++i) {
    const u32 n = row + i % 4 / 2 * 8, t = token + i / 4 * 8 + i % 2;
    if (n >= s.rows || t >= s.tokens) continue;
    write_product(totals[i / 4][i % 4], bias, result, n, t, s);
  }
}

}  // namespace efimd::kernels
