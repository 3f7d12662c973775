#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

/// RoPE of a pair. Sums by name, so that every kernel has the same bits.
__device__ __forceinline__ float2 rotate(float2 pair, float cosine, float sine) {
  return make_float2(fmaf(pair.x, cosine, -(pair.y * sine)), fmaf(pair.x, sine, pair.y * cosine));
}

// One head of one token into its page; `block` is the page's K or V of the KV head.
//   head [E] f32 in shared memory   block: kernels::Kv has the layout
__device__ __forceinline__ void store_halves(const float* head, u32* block, size_t slot,
                                             u32 width) {
  u32* to = block + slot * (width / 2);
  for (u32 pair = threadIdx.x; pair < width / 2; pair += 32) {
    to[pair] = to_half(head[2 * pair]) | to_half(head[2 * pair + 1]) << 16U;
  }
}

// The same in 8 bits. A scale is the smallest f16 that is no less than the largest of its 32
// elements / 127. Elements past 60000 are cut to that. Its product with 127 is exact, so that every
// device finds the same one.
__device__ __forceinline__ void store_bytes(const float* head, u32* block, size_t slot, u32 width) {
  const u32 lane = threadIdx.x, words = quant_words_of(width), scale_words = scale_words_of(width);
  auto* quants = reinterpret_cast<signed char*>(block + slot * words);
  auto* scales = reinterpret_cast<unsigned short*>(block + 32 * words + slot * scale_words);
  for (u32 group = 0; group < 2 * scale_words; ++group) {
    const u32 e = group * 32 + lane;
    const float value = e < width ? head[e] : 0.0F;
    const float largest = fminf(warp_max(fabsf(value)), 60000.0F);
    u32 bits = float_to_half(largest / 127.0F);
    if (half_to_float(bits) * 127.0F < largest) ++bits;  // the next half
    const float inverse = bits == 0 ? 0.0F : 1.0F / half_to_float(bits);
    const float level = fminf(fmaxf(rintf(value * inverse), -127.0F), 127.0F);
    if (e < 4 * words) quants[e] = static_cast<signed char>(level);
    if (lane == 0) scales[group] = static_cast<unsigned short>(bits);
  }
}

// Norms of heads, RoPE, and K and V into their pages.
//   qkv [T][H + 2 Hk][E] f32: queries, which stay there, times score_scale, then keys and values
//   rope_table [T][2][half]: cosines, sines
//   query_norm, key_norm [E]   kv [page][Hk][2] of kernels::Kv   places [T]: page * P + slot
//   grid (T, H + 2 Hk), block (32).  E even, <= 256.
template <Kv kForm>
__device__ __forceinline__ void store_rows(float* qkv, const float* rope_table,
                                           const float* query_norm, const float* key_norm, u32* kv,
                                           const u32* places, const StoreSizes& s) {
  __shared__ float head[256];
  const u32 t = blockIdx.x, y = blockIdx.y, lane = threadIdx.x;
  const bool is_query = y < s.heads;
  const bool is_key = !is_query && y < s.heads + s.kv_heads;
  float* row = qkv + (static_cast<size_t>(t) * (s.heads + 2 * s.kv_heads) + y) * s.head_width;
  for (u32 e = lane; e < s.head_width; e += 32) head[e] = row[e];
  __syncthreads();
  if ((is_query && s.query_norm != 0) || (is_key && s.key_norm != 0)) {
    const float* norm = is_query ? query_norm : key_norm;
    float squares = 0;
    for (u32 e = lane; e < s.head_width; e += 32) squares = fmaf(head[e], head[e], squares);
    const float scale =
        1.0F / sqrtf(warp_sum(squares) / static_cast<float>(s.head_width) + s.epsilon);
    for (u32 e = lane; e < s.head_width; e += 32) head[e] = head[e] * scale * norm[e];
    __syncthreads();
  }
  if (is_query || is_key) {
    for (u32 i = lane; i < s.half; i += 32) {
      const float cosine = rope_table[t * 2 * s.half + i];
      const float sine = rope_table[(t * 2 + 1) * s.half + i];
      const u32 first = s.adjacent != 0 ? 2 * i : i;
      const u32 second = s.adjacent != 0 ? 2 * i + 1 : i + s.half;
      const float2 pair = rotate(make_float2(head[first], head[second]), cosine, sine);
      head[first] = pair.x;
      head[second] = pair.y;
    }
    __syncthreads();
  }
  if (is_query) {
    for (u32 e = lane; e < s.head_width; e += 32) row[e] = head[e] * s.score_scale;
    return;
  }
  const size_t page = places[t] / 32, slot = places[t] % 32;
  const size_t block = (page * s.kv_heads + (y - s.heads) % s.kv_heads) * 2 + (is_key ? 0 : 1);
  if constexpr (kForm == Kv::kQ8) {
    const u32 token_words = quant_words_of(s.head_width) + scale_words_of(s.head_width);
    store_bytes(head, kv + block * 32 * token_words, slot, s.head_width);
  } else {
    store_halves(head, kv + block * 32 * (s.head_width / 2), slot, s.head_width);
  }
}

}  // namespace efimd::kernels
