#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// Norms of heads, RoPE, and K and V into their pages.
//   q [T][H][E] f32, in place, times score_scale   k, v [T][Hk][E] f32   turns [T][2][half]: cosines, sines
//   query_norm, key_norm [E]   kv [page][Hk][2][P][E] f16, two a word   places [T]: page * P + slot
//   grid (T, H + 2 Hk), block (32).  E even, <= 256.  To f16: nearest even, saturating.
__device__ __forceinline__ void store_rows(float* q, const float* k, const float* v,
                                           const float* turns, const float* query_norm,
                                           const float* key_norm, u32* kv, const u32* places,
                                           const StoreSizes& s) {
  __shared__ float head[256];
  const u32 t = blockIdx.x, y = blockIdx.y, lane = threadIdx.x;
  const bool is_query = y < s.heads;
  const bool is_key = !is_query && y < s.heads + s.kv_heads;
  const u32 index = is_query ? y : (y - s.heads) % s.kv_heads;
  const size_t from =
      (static_cast<size_t>(t) * (is_query ? s.heads : s.kv_heads) + index) * s.head_width;
  const float* source = is_query ? q : is_key ? k : v;
  for (u32 e = lane; e < s.head_width; e += 32) head[e] = source[from + e];
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
      const float cosine = turns[t * 2 * s.half + i];
      const float sine = turns[(t * 2 + 1) * s.half + i];
      const u32 first = s.adjacent != 0 ? 2 * i : i;
      const u32 second = s.adjacent != 0 ? 2 * i + 1 : i + s.half;
      const float a = head[first], b = head[second];
      head[first] = a * cosine - b * sine;
      head[second] = a * sine + b * cosine;
    }
    __syncthreads();
  }
  if (is_query) {
    for (u32 e = lane; e < s.head_width; e += 32) q[from + e] = head[e] * s.score_scale;
    return;
  }
  const size_t page = places[t] / 32, slot = places[t] % 32;
  u32* to =
      kv + (((page * s.kv_heads + index) * 2 + (is_key ? 0 : 1)) * 32 + slot) * (s.head_width / 2);
  for (u32 pair = lane; pair < s.head_width / 2; pair += 32) {
    const float low = fminf(fmaxf(head[2 * pair], -65504.0F), 65504.0F);
    const float high = fminf(fmaxf(head[2 * pair + 1], -65504.0F), 65504.0F);
    to[pair] = float_to_half(low) | float_to_half(high) << 16U;
  }
}

}  // namespace efimd::kernels
