#pragma once

#include "kernels/block_sums.cuh"
#include "kernels/copy_async.cuh"
#include "kernels/mma.cuh"
#include "kernels/outputs.cuh"
#include "kernels/sizes.h"

// Products of f16 and bf16 weights with inputs of the same type, on the tensor cores, for one token
// as for many. Products of 16-bit numbers are exact in f32, but tensor cores add them in an order
// of their own. So all steps must go this way if a token's sum is to be the same in each.
//
// Why it should be faster. A warp's instructions for a row, a token and 32 columns (nvcc's PTX for compute capability 8.0):
// matmul() of eight tokens 6.8, this 0.14, tiles 0.16 to 0.24. A single token reads as many bytes either way, and gains
// nothing; but its bits must be those of a prompt. A prompt of 2,048 tokens through the largest matrix of a 7B model reads
// 52 GB out of the cache by blocks of eight tokens, 9 GB by tiles of 64, 4 GB by tiles of 128. The smaller tiles are for
// products with too few blocks: four times as many, of which each reads half as much.
//
// A row is cut into chunks of 64 columns, these into pieces of 32. A piece is two products of K = 16: lane 4g + c has columns
// 8c .. 8c + 7 of it, the first four in the first. Chunks c, c + 8, ... are a class, added up one after another; then the
// sums of the classes.
namespace efimd::kernels {

constexpr u32 kPieceWords = kHalvesPiece / 2;

template <Packed kType>
__device__ __forceinline__ void add_half_piece(const uint4& upper, const uint4& lower,
                                               const uint4& tokens, float (&sums)[4]) {
  const u32 first[4] = {upper.x, lower.x, upper.y, lower.y}, first_x[2] = {tokens.x, tokens.y};
  const u32 second[4] = {upper.z, lower.z, upper.w, lower.w}, second_x[2] = {tokens.z, tokens.w};
  if constexpr (kType == Packed::kF16) {
    mma_f16(first, first_x, sums);
    mma_f16(second, second_x, sums);
  } else {
    mma_bf16(first, first_x, sums);
    mma_bf16(second, second_x, sums);
  }
}

__device__ __forceinline__ uint4 four_words(const u32* from) {
  return *reinterpret_cast<const uint4*>(from);
}

/// Pieces whose weights are on their way at once.
constexpr u32 kPiecesAtOnce = 4;
template <u32 kNumber>
struct Count {
  static constexpr u32 kValue = kNumber;
};

/// Of the pieces of a row those of this warp's class, and the i-th of them.
__device__ __forceinline__ u32 pieces_of_warp(u32 pieces) {
  const u32 whole = pieces / (2 * kHalvesWarps) * 2, rest = pieces % (2 * kHalvesWarps);
  const u32 own = rest > 2 * threadIdx.y ? rest - 2 * threadIdx.y : 0;
  return whole + (own < 2 ? own : 2);
}
__device__ __forceinline__ u32 piece_of_warp(u32 i) {
  return 2 * (threadIdx.y + i / 2 * kHalvesWarps) + i % 2;
}

// This warp's class of the products of 16 rows, of which this lane has g and g + 8, with the token
// whose columns of the lane begin at `token`.
template <Packed kType>
__device__ __forceinline__ void add_class(const u32* upper, const u32* lower, const u32* token,
                                          u32 cols, float (&sums)[4]) {
  const auto add_pieces = [&](u32 first, auto count) {
    constexpr u32 kCount = decltype(count)::kValue;
    uint4 of_upper[kCount], of_lower[kCount];
#pragma unroll
    for (u32 i = 0; i < kCount; ++i) {
      const u32 at = piece_of_warp(first + i) * kPieceWords;
      of_upper[i] = four_words(upper + at), of_lower[i] = four_words(lower + at);
    }
#pragma unroll
    for (u32 i = 0; i < kCount; ++i) {
      const u32 at = piece_of_warp(first + i) * kPieceWords;
      add_half_piece<kType>(of_upper[i], of_lower[i], four_words(token + at), sums);
    }
  };
  const u32 pieces = pieces_of_warp(cols / 32);
  u32 piece = 0;
  for (; piece + kPiecesAtOnce <= pieces; piece += kPiecesAtOnce)
    add_pieces(piece, Count<kPiecesAtOnce>{});
  for (; piece < pieces; ++piece) add_pieces(piece, Count<1>{});
}

// Rows of a weight matrix times rows of inputs, as matmul() has them, for up to eight tokens a block.
//   w, bias, experts, result as of matmul()   x [T / share][K] of the weights' type   K % 32 == 0
//   grid (T / kTokensOfTile, or T with experts; min(N, 32768) / kHalvesRows; N / 32768), block (32, kHalvesWarps): a block
//   for 16 rows, a warp for each class of chunks
//   must read the part once for each eight tokens: bound by bandwidth, judge it in GB/s.
template <Packed kType>
__device__ __forceinline__ void matmul_halves(const u32* w, const u32* x, const float* bias,
                                              const u32* experts, float* result,
                                              const MatmulSizes& s) {
  __shared__ BlockSums<kHalvesWarps> classes;
  const u32 first_row = blockIdx.z * kMatmulRowsMax + blockIdx.y * kHalvesRows;
  if (first_row >= s.rows) return;  // whole blocks
  const u32 first_token = s.experts != 0 ? blockIdx.x : blockIdx.x * kTokensOfTile;
  const u32 behind = s.experts != 0 ? first_token + 1 : s.tokens;
  const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
  const u32* part =
      w +
      (s.experts != 0 ? static_cast<size_t>(experts[first_token]) * s.rows * s.row.row_words : 0);
  // Rows and tokens past the last repeat it.
  const u32* upper =
      part + static_cast<size_t>(at_most(first_row + g, s.rows)) * s.row.row_words + 4 * c;
  const u32* lower =
      part + static_cast<size_t>(at_most(first_row + g + 8, s.rows)) * s.row.row_words + 4 * c;
  const u32* token =
      x + static_cast<size_t>(at_most(first_token + g, behind) / s.share) * (s.cols / 2) + 4 * c;
  float sums[4] = {};
  add_class<kType>(upper, lower, token, s.cols, sums);
  classes.put(sums);
  __syncthreads();
  for (u32 i = threadIdx.y * 32 + threadIdx.x; i < kTokensOfTile * kHalvesRows;
       i += 32 * kHalvesWarps) {
    const u32 n = first_row + i % kHalvesRows, t = first_token + i / kHalvesRows;
    if (n >= s.rows || t >= behind) continue;
    write_product(classes.sum(i / kHalvesRows, i % kHalvesRows), bias, result, n, t, s);
  }
}

// The piece after `piece`: through the chunks of a class, then the next class.
__device__ __forceinline__ u32 piece_behind(u32 piece, u32 pieces) {
  if (piece % 2 == 0 && piece + 1 < pieces) return piece + 1;
  const u32 chunk = piece / 2;
  if (2 * (chunk + kHalvesWarps) < pieces) return 2 * (chunk + kHalvesWarps);
  const u32 next = chunk % kHalvesWarps + 1;
  return next < kHalvesWarps && 2 * next < pieces ? 2 * next : pieces;
}

/// A piece of the rows and tokens of a tile, in shared memory, row by row. Lanes of a warp read
/// other banks without padding.
template <u32 kTile>
struct HalvesStage {
  alignas(16) u32 w[kTile * kPieceWords];
  alignas(16) u32 x[kTile * kPieceWords];
};

// The same for prompts, bit for bit: blocks for kTile rows and tokens.
//   s.share == 1, s.experts == 0
//   grid (T / kTile, min(N, 32768) / kTile, N / 32768), block (32, kTile / 16): a warp for half of the rows and 32 tokens
//   must do 2 N K T operations, and read the part once for each kTile tokens, out of the cache where these run beside each
//   other, as the grid has them: judge it in TFLOP/s.
template <Packed kType, u32 kTile>
__device__ __forceinline__ void matmul_halves_tiles(const u32* w, const u32* x, const float* bias,
                                                    float* result, const MatmulSizes& s) {
  constexpr u32 kThreads = 2 * kTile, kSixteens = kTile / 32, kColumns = 4, kStages = 3;
  __shared__ HalvesStage<kTile> stages[kStages];
  const u32 first_row = blockIdx.z * kMatmulRowsMax + blockIdx.y * kTile;
  const u32 first_token = blockIdx.x * kTile;
  if (first_row >= s.rows) return;  // whole blocks
  const u32 thread = threadIdx.y * 32 + threadIdx.x, pieces = s.cols / 32;
  const auto copy = [&](HalvesStage<kTile>& to, u32 piece) {
#pragma unroll
    for (u32 i = thread; i < 4 * kTile; i += kThreads) {
      const u32 index = i / 4, word = piece * kPieceWords + i % 4 * 4;
      copy_16(to.w + 4 * i,
              w + static_cast<size_t>(at_most(first_row + index, s.rows)) * s.row.row_words + word);
      copy_16(
          to.x + 4 * i,
          x + static_cast<size_t>(at_most(first_token + index, s.tokens)) * (s.cols / 2) + word);
    }
  };
  const u32 row = threadIdx.y % 2 * (kTile / 2), token = threadIdx.y / 2 * 8 * kColumns;
  float sums[kSixteens][kColumns][4] = {}, totals[kSixteens][kColumns][4] = {};

  u32 coming = 0;  // the piece that is copied next
#pragma unroll
  for (u32 i = 0; i + 1 < kStages; ++i) {
    if (coming < pieces) copy(stages[i], coming);
    close_batch();
    coming = coming < pieces ? piece_behind(coming, pieces) : pieces;
  }
  u32 now = 0;
  for (u32 piece = 0; piece < pieces; now = now + 1 < kStages ? now + 1 : 0) {
    wait_for_batches<kStages - 2>();
    __syncthreads();  // this stage is there, and nobody reads the last one any more
    if (coming < pieces) copy(stages[now > 0 ? now - 1 : kStages - 1], coming);
    close_batch();
    coming = coming < pieces ? piece_behind(coming, pieces) : pieces;
    const u32* of_w = stages[now].w + row * kPieceWords + 4 * threadIdx.x;
    const u32* of_x = stages[now].x + token * kPieceWords + 4 * threadIdx.x;
    uint4 tokens[kColumns];
#pragma unroll
    for (u32 j = 0; j < kColumns; ++j) tokens[j] = four_words(of_x + 8 * j * kPieceWords);
#pragma unroll
    for (u32 i = 0; i < kSixteens; ++i) {
      const uint4 upper = four_words(of_w + 16 * i * kPieceWords);
      const uint4 lower = four_words(of_w + (16 * i + 8) * kPieceWords);
#pragma unroll
      for (u32 j = 0; j < kColumns; ++j) add_half_piece<kType>(upper, lower, tokens[j], sums[i][j]);
    }
    const u32 next = piece_behind(piece, pieces);
    if (next >= pieces || next / 2 % kHalvesWarps != piece / 2 % kHalvesWarps) {
#pragma unroll
      for (u32 i = 0; i < kSixteens * kColumns * 4; ++i) {
        float& sum = sums[i / (4 * kColumns)][i / 4 % kColumns][i % 4];
        totals[i / (4 * kColumns)][i / 4 % kColumns][i % 4] += sum;
        sum = 0;
      }
    }
    piece = next;
  }

  const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
  for (u32 i = 0; i < kSixteens * kColumns * 4; ++i) {
    const u32 n = first_row + row + i / (4 * kColumns) * 16 + i % 4 / 2 * 8 + g;
    const u32 t = first_token + token + i / 4 % kColumns * 8 + 2 * c + i % 2;
    if (n >= s.rows || t >= s.tokens) continue;
    write_product(totals[i / (4 * kColumns)][i / 4 % kColumns][i % 4], bias, result, n, t, s);
  }
}

}  // namespace efimd::kernels
