#pragma once

#include "kernels/store_rows.cuh"

namespace efimd::kernels {

/// Elements of a head that RoPE rotates as one, or two neighbours that it leaves.
struct HeadPair {
  u32 head;   ///< of all: queries, keys, values
  u32 index;  ///< the pair's number
  bool rotated;
  u32 first, second;

  __device__ __forceinline__ HeadPair(u32 pair, const HeadsSizes& s) {
    const u32 pairs = s.head_width / 2;
    head = s.first / s.head_width + pair / pairs;
    index = pair % pairs;
    rotated = head < s.heads + s.kv_heads && index < s.half;
    const bool apart = rotated && s.adjacent == 0;
    first = apart ? index : 2 * index;
    second = apart ? index + s.half : 2 * index + 1;
  }
  /// Row of the product.
  __device__ __forceinline__ u32 row(u32 element, const HeadsSizes& s) const {
    return head * s.head_width + element;
  }
};

// Writes a token's pair of a head, without its bias, to store_rows()'s places. It is rotated;
// queries go to qkv, keys and values to their pages of f16.
__device__ __forceinline__ void store_pair(const HeadPair& of, float2 pair, const float* bias,
                                           u32 token, float* qkv, const float* rope_table, u32* kv,
                                           const u32* places, const HeadsSizes& s) {
  if (s.biased != 0)
    pair = make_float2(pair.x + bias[of.row(of.first, s)], pair.y + bias[of.row(of.second, s)]);
  if (of.rotated)
    pair = rotate(pair, rope_table[token * 2 * s.half + of.index],
                  rope_table[(token * 2 + 1) * s.half + of.index]);
  if (of.head < s.heads) {
    float* row =
        qkv + (static_cast<size_t>(token) * (s.heads + 2 * s.kv_heads) + of.head) * s.head_width;
    row[of.first] = pair.x * s.score_scale;
    row[of.second] = pair.y * s.score_scale;
    return;
  }
  const u32 of_kv = of.head - s.heads;
  const size_t page = places[token] / 32, slot = places[token] % 32;
  const size_t block = (page * s.kv_heads + of_kv % s.kv_heads) * 2 + of_kv / s.kv_heads;
  auto* halves = reinterpret_cast<unsigned short*>(kv) + (block * 32 + slot) * s.head_width;
  halves[of.first] = static_cast<unsigned short>(to_half(pair.x));
  halves[of.second] = static_cast<unsigned short>(to_half(pair.y));
}

}  // namespace efimd::kernels
