#pragma once

#include "kernels/copy_async.cuh"
#include "kernels/joined.cuh"
#include "kernels/mma.cuh"

// Attention over KV in f16 on the tensor cores. A tile is 16 heads of tokens, all of one KV head: row i of a step is head
// i % G of token i / G, with G = H / Hk heads that share their K and V. Of lane 4g + c are rows g and g + 8, and
//   scores   of each 8 tokens of a page those of 2c, 2c + 1: four groups
//   values   elements of the result, which differ from kernel to kernel
// Queries and weights are rounded to f16, as K and V are; sums are f32. A weight's rounded value is what goes into the
// softmax's sum as well. A row's bits are the same in all kernels and tiles: the order of its pages, of the products and
// of the sums is; what other rows see and it does not weighs 0, which adds nothing.
namespace efimd::kernels {

constexpr u32 kUpper = 0, kLower = 1;  ///< rows g and g + 8

/// Saturating, nearest even; low in the lower half.
__device__ __forceinline__ u32 two_halves(float low, float high) {
  return float_to_half(fminf(fmaxf(low, -65504.0F), 65504.0F)) |
         float_to_half(fminf(fmaxf(high, -65504.0F), 65504.0F)) << 16U;
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

/// What a lane holds of the queries of 16 rows: of each piece of 32 elements 8c .. 8c + 7, as two products take them.
template <u32 kPieces>
struct TileQueries {
  u32 halves[kPieces][2][4];

  __device__ __forceinline__ TileQueries(const float* qkv, const TileRow (&rows)[2],
                                         const AttentionSizes& s) {
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      const float* q =
          qkv + (static_cast<size_t>(rows[r].token) * (s.heads + 2 * s.kv_heads) + rows[r].head) *
                    (32 * kPieces);
#pragma unroll
      for (u32 i = 0; i < 2 * kPieces; ++i) {
        float4 four = {0, 0, 0, 0};
        if (rows[r].token < s.tokens)
          four = *reinterpret_cast<const float4*>(q + i / 2 * 32 + threadIdx.x % 4 * 8 + i % 2 * 4);
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

/// What two scores of a row weigh against its maximum, and their sum.
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
    const float kept = most[row] == -INFINITY ? 0.0F : expf(most[row] - raised);
    most[row] = raised;
    return kept;
  }
  /// `sums` are those of this lane's weights, group by group.
  __device__ __forceinline__ void add(u32 row, float kept, const float (&sums)[4]) {
    sum[row] = fmaf(sum[row], kept, row_sum(sums[0] + sums[1] + sums[2] + sums[3]));
  }
};

__device__ __forceinline__ void scale_rows(const float (&by)[2], float (&values)[4]) {
#pragma unroll
  for (u32 i = 0; i < 4; ++i) values[i] *= by[i / 2];
}

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

/// Token of a page whose value is word i of add_values(), for its first or second 16 tokens.
__device__ __forceinline__ u32 value_token(u32 sixteen, u32 i) {
  return 16 * sixteen + 8 * (i / 2) + 2 * (threadIdx.x % 4) + i % 2;
}

__device__ __forceinline__ float* record_of(float* records, const TileRow& row, u32 split,
                                            const AttentionSizes& s) {
  return records + ((static_cast<size_t>(row.token) * s.heads + row.head) * s.splits + split) *
                       (kRecordHead + s.head_width);
}

__device__ __forceinline__ const u32* page_of(const u32* kv, u32 page, u32 kv_head, u32 page_words,
                                              const AttentionSizes& s) {
  return kv + (static_cast<size_t>(page) * s.kv_heads + kv_head) * 2 * page_words;
}

// Causal attention of a step's tokens, each for itself: attention() with the tensor cores.
//   qkv, kv, pages, rows, records as of attention(), E = 32 kPieces
//   grid (T * M, Hk, splits) with M = ceil(G / kHeadsOfWarp), block (32, 4): a block for up to 16 heads of a token; its warps
//   score 8 tokens of a page each, and sum up the result in sixteens of elements: w, w + 4, ...
//   must read 4 C Hk E bytes: bound by them and by the chain of a split's pages.
template <u32 kPieces>
__device__ __forceinline__ void attention_token(const float* qkv, const u32* kv, const u32* pages,
                                                const uint2* rows, float* records,
                                                const AttentionSizes& s) {
  constexpr u32 kWarps = 4, kWords = 16 * kPieces, kSixteens = (2 * kPieces + kWarps - 1) / kWarps;
  __shared__ float most_of[kWarps][16];
  __shared__ float sums_of[kWarps][16][4];
  __shared__ u32 weights_of[kWarps][2][32];
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

  TileSoftmax softmax;
  Joined joined[2];
  float values[kSixteens][2][4] = {}, all[kSixteens][2][4] = {};
  const auto join_split = [&] {
    const float2 shares[2] = {joined[0].take(softmax.most[0], softmax.sum[0]),
                              joined[1].take(softmax.most[1], softmax.sum[1])};
#pragma unroll
    for (u32 i = 0; i < 8 * kSixteens; ++i) {
      float& value = values[i / 8][i / 4 % 2][i % 4];
      float& to = all[i / 8][i / 4 % 2][i % 4];
      to = join(to, value, shares[i % 4 / 2]);
      value = 0;
    }
    softmax = {};
  };
  const auto read_keys = [&](u32 of_page, uint4(&keys)[kPieces]) {
    const u32* at = page_of(kv, pages[place.y + of_page], kv_head, 32 * kWords, s) +
                    (8 * warp + g) * kWords + 4 * c;
#pragma unroll
    for (u32 i = 0; i < kPieces; ++i) keys[i] = *reinterpret_cast<const uint4*>(at + 16 * i);
  };
  uint4 keys[kPieces];
  if (page < last_page) read_keys(page, keys);
  for (; page < last_page; ++page) {
    if (whole && page % s.split_pages == 0) join_split();
    float scores[4] = {};
#pragma unroll
    for (u32 i = 0; i < kPieces; ++i) add_scores(queries.halves[i], keys[i], scores);
    // What comes next is on its way while the warps wait for one another.
    if (page + 1 < last_page) read_keys(page + 1, keys);
    const u32* value = page_of(kv, pages[place.y + page], kv_head, 32 * kWords, s) + 32 * kWords;
    u32 words[kSixteens][2][4];
#pragma unroll
    for (u32 i = 0; i < 8 * kSixteens; ++i) {
      const u32 sixteen = warp + kWarps * (i / 8), slot = value_token(i / 4 % 2, i % 4);
      // Slots that hold nothing yet may hold anything.
      const bool there = sixteen < 2 * kPieces && page * 32 + slot < visible;
      words[i / 8][i / 4 % 2][i % 4] = there ? value[slot * kWords + 8 * sixteen + g] : 0;
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
      kept[r] = softmax.raise(r, most);
      const TwoWeights weights(scores[2 * r], scores[2 * r + 1], softmax.most[r]);
      weights_of[warp][r][threadIdx.x] = weights.halves;
      sums_of[warp][g + 8 * r][c] = weights.sum;
    }
    __syncthreads();
#pragma unroll
    for (u32 r = 0; r < 2; ++r) {
      const u32 row = g + 8 * r;
      softmax.add(r, kept[r],
                  {sums_of[0][row][c], sums_of[1][row][c], sums_of[2][row][c], sums_of[3][row][c]});
    }
#pragma unroll
    for (u32 i = 0; i < 2 * kSixteens; ++i) scale_rows(kept, values[i / 2][i % 2]);
#pragma unroll
    for (u32 half = 0; half < 2; ++half) {
      const u32 weights[4] = {weights_of[2 * half][kUpper][threadIdx.x],
                              weights_of[2 * half][kLower][threadIdx.x],
                              weights_of[2 * half + 1][kUpper][threadIdx.x],
                              weights_of[2 * half + 1][kLower][threadIdx.x]};
#pragma unroll
      for (u32 i = 0; i < kSixteens; ++i)
        add_values(weights, words[i][half], values[i][0], values[i][1]);
    }
  }
  if (whole) join_split();
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    if (own[r].token >= s.tokens) continue;
    float* record = record_of(records, own[r], split, s);
    if (warp == 0 && c == 0) {
      record[0] = whole ? joined[r].most : softmax.most[r];
      record[1] = whole ? joined[r].sum : softmax.sum[r];
    }
#pragma unroll
    for (u32 i = 0; i < 4 * kSixteens; ++i) {
      const u32 sixteen = warp + kWarps * (i / 4);
      if (sixteen >= 2 * kPieces) break;
      const u32 at = 2 * r + i / 2 % 2;  // columns 2c, 2c + 1
      record[kRecordHead + 16 * sixteen + 4 * c + i % 4] =
          whole ? all[i / 4][i % 2][at] : values[i / 4][i % 2][at];
    }
  }
}

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

/// What a warp of attention_tiles knows of its 16 rows.
template <u32 kPieces, bool kWhole>
struct AttendedRows {
  TileSoftmax softmax;
  Joined joined[2];
  float values[kPieces][4][4] = {};  ///< [i]: elements 4n + i for columns n
  float all[kWhole ? kPieces : 1][4][4] = {};

  __device__ __forceinline__ void join_split() {
    const float2 shares[2] = {joined[0].take(softmax.most[0], softmax.sum[0]),
                              joined[1].take(softmax.most[1], softmax.sum[1])};
#pragma unroll
    for (u32 i = 0; i < 16 * kPieces; ++i) {
      float& value = values[i / 16][i / 4 % 4][i % 4];
      float& to = all[i / 16][i / 4 % 4][i % 4];
      to = join(to, value, shares[i % 4 / 2]);
      value = 0;
    }
    softmax = {};
  }

  __device__ __forceinline__ void add_page(const TileQueries<kPieces>& queries,
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
      kept[r] = softmax.raise(r, row_max(most[r]));
      float sums[4];
#pragma unroll
      for (u32 eight = 0; eight < 4; ++eight) {
        const TwoWeights two(scores[eight][2 * r], scores[eight][2 * r + 1], softmax.most[r]);
        weights[eight][r] = two.halves;
        sums[eight] = two.sum;
      }
      softmax.add(r, kept[r], sums);
    }
#pragma unroll
    for (u32 i = 0; i < 4 * kPieces; ++i) scale_rows(kept, values[i / 4][i % 4]);
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
        add_values(of_half, words[0], values[i][0], values[i][1]);
        add_values(of_half, words[1], values[i][2], values[i][3]);
      }
    }
  }

  __device__ __forceinline__ void write(u32 r, float* record) const {
    const u32 c = threadIdx.x % 4;
    if (c == 0) {
      record[0] = kWhole ? joined[r].most : softmax.most[r];
      record[1] = kWhole ? joined[r].sum : softmax.sum[r];
    }
#pragma unroll
    for (u32 i = 0; i < kPieces; ++i)
#pragma unroll
      for (u32 j = 0; j < 8; ++j) {
        const u32 at = 2 * r + j / 4;  // columns 2c, 2c + 1
        record[kRecordHead + 32 * i + 8 * c + j] =
            kWhole ? all[i][j % 4][at] : values[i][j % 4][at];
      }
  }
};

// The same for tokens that follow one another, bit for bit: a block's rows share their readings.
//   grid (T G / kHeadsOfTile, Hk, splits, of which there is one with kWhole), block (32, 4): a warp for 16 rows
//   must read 4 C Hk E bytes for each tile, out of the cache for all but the first, and do 4 C H E operations a token:
//   judge it in TFLOP/s.
template <u32 kPieces, bool kWhole>
__device__ __forceinline__ void attention_tiles(const float* qkv, const u32* kv, const u32* pages,
                                                const uint2* rows, float* records,
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

  AttendedRows<kPieces, kWhole> attended;
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
      if (kWhole && page % s.split_pages == 0) attended.join_split();
      if (page * 32 < warp_visible) attended.add_page(queries, now, page, stages[page % kStages]);
      __syncthreads();  // nobody reads it any more
    }
    if (kWhole) attended.join_split();
  }
#pragma unroll
  for (u32 r = 0; r < 2; ++r) {
    if (own[r].token >= s.tokens || split * s.split_pages * 32 >= own[r].visible) continue;
    attended.write(r, record_of(records, own[r], split, s));
  }
}

}  // namespace efimd::kernels
