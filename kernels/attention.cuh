#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// q . k of one token: query [E] in shared memory, key E halves.
__device__ __forceinline__ float score_of(const float* query, const u32* key, u32 width) {
  float score = 0;
  if (width % 8 == 0) {
    for (u32 pair = 0; pair < width / 2; pair += 4) {
      const uint4 packed = *reinterpret_cast<const uint4*>(key + pair);
      const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const float2 both = both_halves(words[i]);
        score = fmaf(query[2 * (pair + i)], both.x, score);
        score = fmaf(query[2 * (pair + i) + 1], both.y, score);
      }
    }
    return score;
  }
  for (u32 pair = 0; pair < width / 2; ++pair) {
    const float2 both = both_halves(key[pair]);
    score = fmaf(query[2 * pair], both.x, score);
    score = fmaf(query[2 * pair + 1], both.y, score);
  }
  return score;
}

// Causal attention of one row and head over one split of its pages.
//   q [T][H][E] f32, rotated, scaled   kv [page][Hk][2][P][E] f16, two a word   pages: page tables
//   rows [T] (position, where its table begins)   records [T][H][splits][2 + E]: m, l, sum of exp(score - m) * v
//   grid (T, H / kAttentionWarps, splits), block (32, kAttentionWarps): a warp for each head; a lane scores one token of
//   a page, then holds words lane, lane + 32, ... of the result, two elements each
//   E even, <= 256.  Splits behind the row are left alone.  Softmax online, in f32.
//   must read 4 C Hk E bytes: heads that share K and V run together, so that the cache serves all but the first.
__device__ __forceinline__ void attention(const float* q, const u32* kv, const u32* pages,
                                          const uint2* rows, float* records,
                                          const AttentionSizes& s) {
  __shared__ float queries[kAttentionWarps][256];
  const u32 t = blockIdx.x, split = blockIdx.z, lane = threadIdx.x;
  const u32 h = blockIdx.y * kAttentionWarps + threadIdx.y;
  const uint2 place = rows[t];
  const u32 visible = place.x + 1;
  const u32 hidden = visible > s.window ? visible - s.window : 0;
  const u32 first_page = split * s.split_pages;
  if (h >= s.heads || first_page * 32 >= visible) return;  // whole warps
  const u32 behind = (visible + 31) / 32;
  const u32 last_page = first_page + s.split_pages < behind ? first_page + s.split_pages : behind;
  const u32 kv_head = h / (s.heads / s.kv_heads);
  const u32 words = s.head_width / 2;

  float* query = queries[threadIdx.y];
  const size_t row = static_cast<size_t>(t) * s.heads + h;
  for (u32 e = lane; e < s.head_width; e += 32) query[e] = q[row * s.head_width + e];
  __syncwarp();
  float most = -INFINITY, sum = 0;
  float2 acc[4];
#pragma unroll
  for (u32 i = 0; i < 4; ++i) acc[i] = make_float2(0.0F, 0.0F);
  for (u32 page = first_page; page < last_page; ++page) {
    const u32 begin = hidden > page * 32 ? hidden : page * 32;
    const u32 end = visible < page * 32 + 32 ? visible : page * 32 + 32;
    if (begin >= end) continue;
    const u32* key =
        kv + (static_cast<size_t>(pages[place.y + page]) * s.kv_heads + kv_head) * 2 * 32 * words;
    const u32 token = page * 32 + lane;
    const bool seen = token >= begin && token < end;
    const float score = seen ? score_of(query, key + lane * words, s.head_width) : -INFINITY;
    const float raised = fmaxf(most, warp_max(score));
    const float kept = most == -INFINITY ? 0.0F : expf(most - raised);
    const float weight = seen ? expf(score - raised) : 0.0F;
    sum = fmaf(sum, kept, warp_sum(weight));
    most = raised;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) acc[i] = make_float2(acc[i].x * kept, acc[i].y * kept);
    const u32* value = key + 32 * words;
    for (u32 c = begin - page * 32; c < end - page * 32; ++c) {
      const float share = __shfl_sync(kWholeWarp, weight, static_cast<int>(c));
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        const u32 word = lane + 32 * i;
        if (word >= words) break;
        const float2 both = both_halves(value[c * words + word]);
        acc[i] = make_float2(fmaf(share, both.x, acc[i].x), fmaf(share, both.y, acc[i].y));
      }
    }
  }
  float* record = records + (row * s.splits + split) * (kRecordHead + s.head_width);
  if (lane == 0) {
    record[0] = most;
    record[1] = sum;
  }
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const u32 word = lane + 32 * i;
    if (word >= words) break;
    record[kRecordHead + 2 * word] = acc[i].x;
    record[kRecordHead + 2 * word + 1] = acc[i].y;
  }
}

}  // namespace efimd::kernels
