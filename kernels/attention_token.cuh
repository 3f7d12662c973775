#pragma once

#include "kernels/attention_halves.cuh"
#include "kernels/overlap.cuh"

namespace efimd::kernels {

// Causal attention of a step's tokens, each for itself: attention() with the tensor cores.
//   qkv, kv, pages, rows, partials as of attention(), E = 32 kPieces
//   grid (T * M, Hk, splits) with M = ceil(G / kHeadsOfWarp), block (32, 4): a block for up to 16 heads of a token; its warps
//   score 8 tokens of a page each, and sum up the result in sixteens of elements: w, w + 4, ...
//   must read 4 C Hk E bytes: bound by them and by the chain of a split's pages.
template <u32 kPieces>
__device__ __forceinline__ void attention_token(const float* qkv, const u32* kv, const u32* pages,
                                                const uint2* rows, float* partials,
                                                const AttentionSizes& s) {
  constexpr u32 kWarps = 4, kWords = 16 * kPieces, kSixteens = (2 * kPieces + kWarps - 1) / kWarps;
  __shared__ float most_of[kWarps][16];
  __shared__ float sums_of[kWarps][16][4];
  __shared__ u32 weights_of[kWarps][2][32];
  await_operands();
  const u32 g = threadIdx.x / 4, c = threadIdx.x % 4, warp = threadIdx.y;
  const u32 group = s.heads / s.kv_heads, tiles = (group + kHeadsOfWarp - 1) / kHeadsOfWarp;
  const u32 token = blockIdx.x / tiles, kv_head = blockIdx.y, split = blockIdx.z;
  const u32 first_page = split * s.split_pages;
  const uint2 place = rows[token];
  const u32 behind = place.x / 32 + 1;
  if (first_page >= behind) return;  // whole blocks
  TileRow own[2];
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    const u32 head = blockIdx.x % tiles * kHeadsOfWarp + g + 8 * r;
    own[r] = tile_row(head < group ? token : s.tokens, kv_head * group + head, rows, s);
  }
  const TileQueries<kPieces> queries(qkv, own, s);
  const u32 visible = place.x + 1, hidden = visible > s.window ? visible - s.window : 0;
  const bool whole = s.splits == 1;
  u32 page = first_page > hidden / 32 ? first_page : hidden / 32;
  const u32 last_page =
      !whole && first_page + s.split_pages < behind ? first_page + s.split_pages : behind;

  // Slots that hold nothing yet may hold anything. The page's first is read instead: no branch stands between loads.
  RowSums<2 * kSixteens, true> sums;
  // By the page's place in the sequence and in memory.
  const auto read_keys = [&](u32 of_page, u32 at_page, uint4(&keys)[kPieces]) {
    const bool there = of_page * 32 + 8 * warp + g < visible;
    const u32* at =
        page_of(kv, at_page, kv_head, 32 * kWords, s) + (there ? 8 * warp + g : 0) * kWords + 4 * c;
#pragma unroll
    for (u32 i = 0; i < kPieces; ++i) {
      const uint4 key = *reinterpret_cast<const uint4*>(at + 16 * i);
      keys[i] = {there ? key.x : 0, there ? key.y : 0, there ? key.z : 0, there ? key.w : 0};
    }
  };
  // A page's place is read two pages ahead, its keys one page ahead.
  const auto place_of = [&](u32 of_page) {
    return pages[place.y + (of_page < last_page ? of_page : last_page - 1)];
  };
  u32 at_page = place_of(page), at_next = place_of(page + 1);
  uint4 keys[kPieces];
  if (page < last_page) read_keys(page, at_page, keys);
  for (; page < last_page; ++page) {
    if (whole && page % s.split_pages == 0) sums.join_split();
    float scores[4] = {};
#pragma unroll
    for (u32 i = 0; i < kPieces; ++i) add_scores(queries.halves[i], keys[i], scores);
    // The next keys are on their way while the warps wait for one another.
    if (page + 1 < last_page) read_keys(page + 1, at_next, keys);
    const u32* value = page_of(kv, at_page, kv_head, 32 * kWords, s) + 32 * kWords;
    at_page = at_next, at_next = place_of(page + 2);
    u32 words[kSixteens][2][4];
#pragma unroll
    for (u32 i = 0; i < 8 * kSixteens; ++i) {
      const u32 sixteen = warp + kWarps * (i / 8), slot = value_token(i / 4 % 2, i % 4);
      const bool there = sixteen < 2 * kPieces && page * 32 + slot < visible;
      const u32 word = value[there ? slot * kWords + 8 * sixteen + g : g];
      words[i / 8][i / 4 % 2][i % 4] = there ? word : 0;
    }

    hide_unseen(page * 32 + 8 * warp + 2 * c, own, scores);
    const float upper = row_max(fmaxf(scores[0], scores[1]));
    const float lower = row_max(fmaxf(scores[2], scores[3]));
    if (c == 0) most_of[warp][g] = upper, most_of[warp][g + 8] = lower;
    __syncthreads();
    float kept[2];
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      float most = most_of[0][g + 8 * r];
#pragma unroll
      for (u32 w = 1; w < kWarps; ++w) most = fmaxf(most, most_of[w][g + 8 * r]);
      kept[r] = sums.softmax.raise(r, most);
      const TwoWeights weights(scores[2 * r], scores[2 * r + 1], sums.softmax.most[r]);
      weights_of[warp][r][threadIdx.x] = weights.halves;
      sums_of[warp][g + 8 * r][c] = weights.sum;
    }
    __syncthreads();
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      const u32 row = g + 8 * r;
      sums.softmax.add(
          r, kept[r],
          {sums_of[0][row][c], sums_of[1][row][c], sums_of[2][row][c], sums_of[3][row][c]});
    }
    sums.scale(kept);
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const u32 weights[4] = {weights_of[2 * half][kUpper][threadIdx.x],
                              weights_of[2 * half][kLower][threadIdx.x],
                              weights_of[2 * half + 1][kUpper][threadIdx.x],
                              weights_of[2 * half + 1][kLower][threadIdx.x]};
#pragma unroll
      for (u32 i = 0; i < kSixteens; ++i)
        add_values(weights, words[i][half], sums.values[2 * i], sums.values[2 * i + 1]);
    }
  }
  if (whole) sums.join_split();
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    if (own[r].token >= s.tokens) continue;
    float* partial = partial_of(partials, own[r], split, s);
    if (warp == 0 && c == 0) sums.write_head(r, whole, partial);
#pragma unroll
    for (u32 i = 0; i < 4 * kSixteens; ++i) {
      const u32 sixteen = warp + kWarps * (i / 4);
      if (sixteen >= 2 * kPieces) break;
      const u32 at = 2 * r + i / 2 % 2;  // columns 2c, 2c + 1
      partial[kPartialHead + 16 * sixteen + 4 * c + i % 4] =
          sums.value(i / 4 * 2 + i % 2, at, whole);
    }
  }
}

}  // namespace efimd::kernels
