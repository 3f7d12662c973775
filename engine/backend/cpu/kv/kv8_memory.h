#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "engine/backend/cpu/kv/kv_memory.h"
#include "engine/backend/cpu/kv/page_memory.h"

namespace efimd::engine::cpu {

/// The K and V of all pages of the device, in 8 bits.
///
///   page      [L][Hk] of
///   K         [E][P]            i8, tokens side by side
///   V         [P][Ev]           i8, elements side by side; Ev = E rounded up to 16
///   K scales  [ceil(E / 32)][P]   f16
///   V scales  [ceil(Ev / 32)][P]  f16
///
/// An element is its quant times the scale of its token and 32 elements. The scale is the smallest
/// f16 that is no less than their largest / 127, so that none is off by more than half a scale. A
/// key enters rotated, and without its bias if KeyBias can separate that. A bias of hundreds, as
/// Qwen2 has, would leave only a few levels for the rest of the key.
///
/// Thread: engine, except put(): one thread for each token and KV head.  Owns: the memory.
/// Fails: open() as PageMemory, and with kUnsupported for heads wider than kKv8HeadWidthMax.
class Kv8Memory {
 public:
  /// Larger elements are cut to this: f16's maximum, less the rounding of a scale.
  static constexpr float kElementMax = 60000.0F;
  static Result<Kv8Memory> open(const KvSizes& sizes);
  static std::size_t page_bytes_of(const KvSizes& sizes);

  PageMemory& pages() { return pages_; }
  const PageMemory& pages() const { return pages_; }
  /// Bytes from KV head to KV head.
  std::size_t head_stride() const { return head_bytes_; }
  int value_width() const { return value_width_; }

  /// A layer and KV head in page 0.
  const unsigned char* head(int layer, int kv_head) const {
    return reinterpret_cast<const unsigned char*>(pages_.data()) + offset(layer, kv_head);
  }

  /// Puts one token's key and value ([E] each) of a layer and KV head into `slot` of a touched page.
  void put(int layer, int kv_head, PageIndex page, int slot, const float* key, const float* value);
  /// Copies the first `tokens` slots of a page, all layers.
  void copy(PageIndex from, PageIndex to, int tokens);

 private:
  /// One head of one page.
  struct Block {
    std::int8_t *k, *v;
    std::uint16_t *k_scales, *v_scales;
  };
  Kv8Memory(const KvSizes& sizes, PageMemory pages);
  std::size_t offset(int layer, int kv_head) const {
    return (static_cast<std::size_t>(layer) * static_cast<std::size_t>(sizes_.kv_heads) +
            static_cast<std::size_t>(kv_head)) *
           head_bytes_;
  }
  Block block(PageIndex page, std::size_t offset);

  KvSizes sizes_;
  int value_width_;
  std::size_t head_bytes_;
  PageMemory pages_;
};

}  // namespace efimd::engine::cpu
