#pragma once

#include "kernels/attention_halves.cuh"
#include "kernels/copy_async.cuh"

namespace efimd::kernels {

/// A page's K and V of a KV head, row by row with so many words from token to token that lanes read other banks.
template <u32 kPieces>
struct PageStage {
  static constexpr u32 kWords = 16 * kPieces;
  static constexpr u32 kKeyStride = kWords + (kWords % 32 == 0 ? 16 : 0);
  static constexpr u32 kValueStride = kWords + 4;
  alignas(16) u32 keys[32 * kKeyStride];
  alignas(16) u32 values[32 * kValueStride];

  /// Begins to copy a page, by the whole block. Tokens from `there` on may hold anything and become zeros.
  __device__ __forceinline__ void copy(const u32* page, u32 there) {
    constexpr u32 kFours = 4 * kPieces;
    for (u32 i = threadIdx.y * 32 + threadIdx.x; i < 32 * kFours; i += 2 * kHeadsOfTile) {
      const u32 token = i / kFours, at = i % kFours * 4;
      u32* key = keys + token * kKeyStride + at;
      u32* value = values + token * kValueStride + at;
      if (token < there) {
        copy_16(key, page + token * kWords + at);
        copy_16(value, page + (32 + token) * kWords + at);
      } else {
        *reinterpret_cast<uint4*>(key) = {0, 0, 0, 0};
        *reinterpret_cast<uint4*>(value) = {0, 0, 0, 0};
      }
    }
  }
};

/// Tokens begin .. end - 1 of a step, of one sequence: those of a tile.
struct TileSequence {
  u32 begin, end;
  u32 table, hidden, visible;  ///< what none of them sees, and what the last one does

  __device__ __forceinline__ TileSequence(u32 first, u32 last, const uint2* rows, u32 window)
      : begin(first), end(last + 1), table(rows[first].y) {
    if (rows[last].y != table)
      for (end = first + 1; rows[end].y == table; ++end) {
      }
    const u32 of_first = rows[first].x + 1;
    hidden = of_first > window ? of_first - window : 0;
    visible = rows[end - 1].x + 1;
  }
};

/// Scores a page's tokens for 16 rows, and adds what they weigh.
template <u32 kPieces, bool kWhole>
__device__ __forceinline__ void add_page(RowSums<4 * kPieces, kWhole>& to,
                                         const TileQueries<kPieces>& queries,
                                         const TileRow (&rows)[2], u32 page,
                                         const PageStage<kPieces>& stage) {
  const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
  float scores[4][4] = {};
#pragma unroll
  for (u32 i = 0; i < kPieces; ++i)
#pragma unroll
    for (u32 eight = 0; eight < 4; ++eight)
      add_scores(
          queries.halves[i],
          *reinterpret_cast<const uint4*>(
              stage.keys + (8 * eight + g) * PageStage<kPieces>::kKeyStride + 16 * i + 4 * c),
          scores[eight]);
  float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (u32 eight = 0; eight < 4; ++eight) {
    hide_unseen(page * 32 + 8 * eight + 2 * c, rows, scores[eight]);
    most[0] = fmaxf(most[0], fmaxf(scores[eight][0], scores[eight][1]));
    most[1] = fmaxf(most[1], fmaxf(scores[eight][2], scores[eight][3]));
  }
  float kept[2];
  u32 weights[4][2];
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    kept[r] = to.softmax.raise(r, row_max(most[r]));
    float sums[4];
#pragma unroll
    for (u32 eight = 0; eight < 4; ++eight) {
      const TwoWeights two(scores[eight][2 * r], scores[eight][2 * r + 1], to.softmax.most[r]);
      weights[eight][r] = two.halves;
      sums[eight] = two.sum;
    }
    to.softmax.add(r, kept[r], sums);
  }
  to.scale(kept);
#pragma unroll
  for (u32 half = 0; half < 2; ++half) {
    const u32 of_half[4] = {weights[2 * half][kUpper], weights[2 * half][kLower],
                            weights[2 * half + 1][kUpper], weights[2 * half + 1][kLower]};
#pragma unroll
    for (u32 i = 0; i < kPieces; ++i) {
      u32 words[2][4];
#pragma unroll
      for (u32 j = 0; j < 4; ++j) {
        const uint2 two = *reinterpret_cast<const uint2*>(
            stage.values + value_token(half, j) * PageStage<kPieces>::kValueStride + 16 * i +
            2 * g);
        words[0][j] = two.x;
        words[1][j] = two.y;
      }
      add_values(of_half, words[0], to.values[4 * i], to.values[4 * i + 1]);
      add_values(of_half, words[1], to.values[4 * i + 2], to.values[4 * i + 3]);
    }
  }
}

template <u32 kPieces, bool kWhole>
__device__ __forceinline__ void write_partial(const RowSums<4 * kPieces, kWhole>& sums, u32 row,
                                              float* partial) {
  const u32 c = threadIdx.x % 4;
  if (c == 0) sums.write_head(row, partial);
#pragma unroll
  for (u32 i = 0; i < kPieces; ++i)
#pragma unroll
    for (u32 j = 0; j < 8; ++j)
      partial[kPartialHead + 32 * i + 8 * c + j] =
          sums.value(4 * i + j % 4, 2 * row + j / 4);  // columns 2c, 2c + 1
}

// attention() of f16 KV with the tensor cores: a block's rows share their readings. A block takes its sequences one after
// another.
//   qkv, kv, pages, rows, partials as of attention(), E = 32 kPieces
//   grid (T G / kHeadsOfTile, Hk, splits, of which there is one with kWhole), block (32, 4): a warp for 16 rows
//   must read 4 C Hk E bytes for each tile, out of the cache for all but the first, and do 4 C H E operations a token:
//   judge it in TFLOP/s.
template <u32 kPieces, bool kWhole>
__device__ __forceinline__ void attention_tiles(const float* qkv, const u32* kv, const u32* pages,
                                                const uint2* rows, float* partials,
                                                const AttentionSizes& s) {
  constexpr u32 kStages = kPieces <= 4 ? 2 : 1, kPageWords = 32 * 16 * kPieces;
  __shared__ PageStage<kPieces> stages[kStages];
  const u32 group = s.heads / s.kv_heads, all_rows = s.tokens * group;
  const u32 first_row = blockIdx.x * kHeadsOfTile, kv_head = blockIdx.y, split = blockIdx.z;
  const u32 behind_row = first_row + kHeadsOfTile < all_rows ? first_row + kHeadsOfTile : all_rows;
  TileRow own[2];
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    const u32 row = first_row + threadIdx.y * kHeadsOfWarp + threadIdx.x / 4 + 8 * r;
    own[r] = tile_row(row / group, kv_head * group + row % group, rows, s);
  }
  const TileQueries<kPieces> queries(qkv, own, s);
  // Tokens of this warp.
  const u32 warp_row = first_row + threadIdx.y * kHeadsOfWarp;
  const u32 warp_first = warp_row / group, warp_last = (warp_row + kHeadsOfWarp - 1) / group;

  RowSums<4 * kPieces, kWhole> sums;
  u32 token = first_row / group;
  while (token * group < behind_row) {
    const TileSequence sequence(token, (behind_row - 1) / group, rows, s.window);
    token = sequence.end;
    const bool in_warp = warp_first < sequence.end && warp_last >= sequence.begin;
    const u32 warp_end = warp_last + 1 < sequence.end ? warp_last + 1 : sequence.end;
    const u32 warp_visible = in_warp ? rows[warp_end - 1].x + 1 : 0;
    TileRow now[2];
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      now[r] = own[r];
      if (own[r].token < sequence.begin || own[r].token >= sequence.end) now[r].visible = 0;
    }
    const u32 first_page = split * s.split_pages, behind = (sequence.visible + 31) / 32;
    u32 page = first_page > sequence.hidden / 32 ? first_page : sequence.hidden / 32;
    const u32 last_page =
        !kWhole && first_page + s.split_pages < behind ? first_page + s.split_pages : behind;
    const auto copy = [&](u32 index) {
      stages[index % kStages].copy(
          page_of(kv, pages[sequence.table + index], kv_head, kPageWords, s),
          sequence.visible - index * 32);
      close_batch();
    };
    if (kStages > 1 && page < last_page) copy(page);
    for (; page < last_page; ++page) {
      if (kStages == 1) {
        copy(page);
        wait_for_batches<0>();
      } else if (page + 1 < last_page) {
        copy(page + 1);
        wait_for_batches<1>();
      } else {
        wait_for_batches<0>();
      }
      __syncthreads();  // the page is there
      if (kWhole && page % s.split_pages == 0) sums.join_split();
      if (page * 32 < warp_visible)
        add_page<kPieces, kWhole>(sums, queries, now, page, stages[page % kStages]);
      __syncthreads();  // nobody reads it any more
    }
    if (kWhole) sums.join_split();
  }
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    if (own[r].token >= s.tokens || split * s.split_pages * 32 >= own[r].visible) continue;
    write_partial<kPieces, kWhole>(sums, r, partial_of(partials, own[r], split, s));
  }
}

}  // namespace efimd::kernels
