#pragma once

// Attention over 8-bit KV, over the Vector of the file that includes this; the specification is
// attention_kv8() in kernels_scalar_kv8.cpp.
//
// A page of a head is expanded on the stack to f16 as in KvMemory, then read as any other. The
// expansion costs as much as two queries, and up to kTaskQueries share it. Its multiplications and
// additions are not fused, so that every instruction set expands to the same bits.
//   must read half of what f16 reads: 2.125 * C * E bytes per KV head at heads of 64
#include "engine/backend/cpu/simd/simd_attention.h"

namespace efimd::engine::cpu {
namespace {

/// The page's K, V and scales; Kv8Memory has the layout.
struct Kv8Block {
  const signed char *k, *v;
  const std::uint16_t *k_scales, *v_scales;
};

inline Kv8Block kv8_block(const AttentionTask& task, const unsigned char* page) {
  Kv8Block block;
  block.k = reinterpret_cast<const signed char*>(page);
  block.v = block.k + task.head_width * kPageTokens;
  block.k_scales = reinterpret_cast<const std::uint16_t*>(block.v + task.value_width * kPageTokens);
  block.v_scales = block.k_scales + (task.head_width + kGroup - 1) / kGroup * kPageTokens;
  return block;
}

/// Adds the rotated bias of element e to register j of a page's keys; f16 takes no more than
/// kHalfMax.
inline Reg with_bias(Reg key, const Kv8Source& source, const float* turns, int e, int j) {
  const Reg along = Vector::set(source.bias_along[e]);
  if (e < 2 * source.pairs) {
    const int pair = source.adjacent_pairs ? e / 2 : e % source.pairs;
    const float* cosine = turns + pair * kPageTokens + j * kLanes;
    const float* sine = cosine + source.pairs * kPageTokens;
    key = Vector::add(key, Vector::mul(along, Vector::load(cosine)));
    key = Vector::add(key, Vector::mul(Vector::set(source.bias_across[e]), Vector::load(sine)));
  } else {
    key = Vector::add(key, along);
  }
  return Vector::min(Vector::set(kHalfMax), Vector::max(Vector::set(-kHalfMax), key));
}

/// All tokens of the page, also those that hold nothing yet.
inline void expand_keys(const Kv8Block& block, const Kv8Source& source, const float* turns,
                        int width, std::uint16_t* out) {
  for (int j = 0; j < kPageRegs; ++j) {
    Reg scale = Vector::zero();
    for (int e = 0; e < width; ++e) {
      const int at = e * kPageTokens + j * kLanes;
      if (e % kGroup == 0)
        scale = Vector::load_half(block.k_scales + e / kGroup * kPageTokens + j * kLanes);
      Reg key = Vector::mul(Vector::load_bytes(block.k + at), scale);
      if (source.bias_along != nullptr) key = with_bias(key, source, turns, e, j);
      Vector::store_half(out + at, key);
    }
  }
}

/// The first `tokens` tokens of the page.
inline void expand_values(const Kv8Block& block, int width, int tokens, std::uint16_t* out) {
  for (int first = 0; first < width; first += kGroup) {
    alignas(64) float scales[kPageTokens];
    for (int j = 0; j < kPageRegs; ++j)
      Vector::store(scales + j * kLanes,
                    Vector::load_half(block.v_scales + first / kGroup * kPageTokens + j * kLanes));
    const int end = first + kGroup < width ? first + kGroup : width;
    for (int c = 0; c < tokens; ++c) {
      const Reg scale = Vector::set(scales[c]);
      for (int e = first; e < end; e += kLanes)
        Vector::store_half(out + c * width + e,
                           Vector::mul(Vector::load_bytes(block.v + c * width + e), scale));
    }
  }
}

void attention_kv8(const AttentionTask& task, const Kv8Source& source) {
  alignas(64) std::uint16_t expanded[2 * kKv8HeadWidthMax * kPageTokens];
  const int turns_stride = 2 * source.pairs * kPageTokens;
  const auto page_bytes = static_cast<int>(source.head_bytes);
  const auto page_of = [&](int page) {
    const unsigned char* at =
        source.kv + static_cast<std::size_t>(task.page_table[page]) * source.page_stride;
    if ((page + 1) * kPageTokens < task.tokens) {
      const unsigned char* next =
          source.kv + static_cast<std::size_t>(task.page_table[page + 1]) * source.page_stride;
      for (int i = 0; i < page_bytes; i += 64) __builtin_prefetch(next + i);
    }
    const Kv8Block block = kv8_block(task, at);
    const int left = task.tokens - page * kPageTokens;
    expand_keys(block, source, source.turns + page * turns_stride, task.head_width, expanded);
    expand_values(block, task.value_width, left < kPageTokens ? left : kPageTokens,
                  expanded + task.head_width * kPageTokens);
    return static_cast<const std::uint16_t*>(expanded);
  };
  attend_pages(task, page_of, [](int, const std::uint16_t* k) { return k; });
}

}  // namespace
}  // namespace efimd::engine::cpu
