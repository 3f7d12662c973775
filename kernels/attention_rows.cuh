#pragma once

#include "kernels/attention.cuh"

namespace efimd::kernels {

// The values of a whole page, for kRows rows.
template <u32 kRows>
__device__ __forceinline__ void add_page_values(RunningSoftmax (&rows)[kRows],
                                                const float (&weights)[kRows], const u32* values,
                                                u32 width) {
  const u32 words = width / 2;
  for (u32 c = 0; c < 32; ++c) {
    float2 value[4];
#pragma unroll
    for (u32 i = 0; i < 4; ++i) {
      const u32 word = threadIdx.x + 32 * i;
      if (word < words) value[i] = both_halves(values[c * words + word]);
    }
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const float share = __shfl_sync(kWholeWarp, weights[r], static_cast<int>(c));
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        if (threadIdx.x + 32 * i >= words) break;
        float2& sum = rows[r].acc[i];
        sum = make_float2(fmaf(share, value[i].x, sum.x), fmaf(share, value[i].y, sum.y));
      }
    }
  }
}

// attention() for prompts with KV in f16, bit for bit: kRows tokens that follow one another read each page together where all
// see the whole of it, else each alone.
//   E % 8 == 0; grid (T / kRows, H / kAttentionWarps, splits), else as attention()
//   must read 4 C Hk E bytes once for kRows tokens, and do 4 C H E operations for each.
template <u32 kRows>
__device__ __forceinline__ void attention_rows(const float* qkv, const u32* kv, const u32* pages,
                                               const uint2* rows, float* records,
                                               const AttentionSizes& s) {
  alignas(16) __shared__ float queries[kAttentionWarps][kRows][256];
  const u32 first = blockIdx.x * kRows, split = blockIdx.z, lane = threadIdx.x;
  const u32 h = blockIdx.y * kAttentionWarps + threadIdx.y;
  if (h >= s.heads) return;  // whole warps
  const u32 kv_head = h / (s.heads / s.kv_heads), words = s.head_width / 2, half_page = 32 * words;
  const u32 first_page = split * s.split_pages;
  const auto hidden = [&](u32 visible) { return visible > s.window ? visible - s.window : 0; };
  const u32 table = rows[first].y;
  u32 visible[kRows];
  u32 last_page = 0;
  bool one_table = true;
#pragma unroll
  for (u32 r = 0; r < kRows; ++r) {
    const bool there = first + r < s.tokens;
    const uint2 place = rows[there ? first + r : first];
    visible[r] = there ? place.x + 1 : 0;
    one_table = one_table && place.y == table;
    const u32 behind = (visible[r] + 31) / 32;
    last_page = last_page > behind ? last_page : behind;
    const float* q =
        qkv + (static_cast<size_t>(first + r) * (s.heads + 2 * s.kv_heads) + h) * s.head_width;
    for (u32 e = lane; there && e < s.head_width; e += 32) queries[threadIdx.y][r][e] = q[e];
  }
  __syncwarp();
  if (last_page > first_page + s.split_pages) last_page = first_page + s.split_pages;
  const float* query = queries[threadIdx.y][0];
  const auto key_of = [&](u32 page_index) {
    return kv + (static_cast<size_t>(pages[page_index]) * s.kv_heads + kv_head) * 2 * half_page;
  };

  RunningSoftmax softmax[kRows];
  for (u32 page = first_page; page < last_page; ++page) {
    bool whole = one_table;
#pragma unroll
    for (u32 r = 0; r < kRows; ++r)
      whole = whole && visible[r] >= page * 32 + 32 && hidden(visible[r]) <= page * 32;
    if (whole) {
      const u32* key = key_of(table + page);
      float scores[kRows], weights[kRows];
      scores_of<kRows>(query, key + lane * words, s.head_width, scores);
#pragma unroll
      for (u32 r = 0; r < kRows; ++r) weights[r] = softmax[r].take(scores[r], true);
      add_page_values<kRows>(softmax, weights, key + half_page, s.head_width);
      continue;
    }
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const u32 unseen = hidden(visible[r]);
      const u32 begin = unseen > page * 32 ? unseen : page * 32;
      const u32 end = visible[r] < page * 32 + 32 ? visible[r] : page * 32 + 32;
      if (begin >= end) continue;
      const u32* key = key_of(rows[first + r].y + page);
      const bool seen = page * 32 + lane >= begin && page * 32 + lane < end;
      float score = -INFINITY;
      if (seen) score = score_of(query + 256 * r, key + lane * words, s.head_width);
      const float weight = softmax[r].take(score, seen);
      add_half_values(softmax[r].acc, weight, key + half_page, begin - page * 32, end - page * 32,
                      s.head_width);
    }
  }
#pragma unroll
  for (u32 r = 0; r < kRows; ++r) {
    if (first_page * 32 >= visible[r]) continue;
    const size_t row = static_cast<size_t>(first + r) * s.heads + h;
    softmax[r].write(records + (row * s.splits + split) * (kRecordHead + s.head_width),
                     s.head_width);
  }
}

}  // namespace efimd::kernels
