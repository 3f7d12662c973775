#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/error.h"
#include "engine/backend/cpu/kv/page_memory.h"
#include "engine/types.h"

namespace efimd::engine::cpu {

struct KvSizes {
  int layers;
  int kv_heads;
  int head_width;
  int page_count;
};

/// Elements of a value in a page (Ev): the head's width rounded up to the lanes of the widest
/// vectors.
int value_width_of(int head_width);

/// The K and V of all pages of the device, in f16.
///
///   page     [L][Hk] of K then V
///   K        [E][P]   tokens side by side: a score is a lane, summed over E without a reduction
///   V        [P][Ev]  elements side by side; Ev = E rounded up to 16, the rest stays 0
///
/// A key enters rotated.
///
/// Thread: engine, except put(): one thread for each token and KV head.  Owns: the memory.
/// Fails: open() as PageMemory.
class KvMemory {
 public:
  static Result<KvMemory> open(const KvSizes& sizes);
  /// Bytes of a page of such a model.
  static std::size_t page_bytes_of(const KvSizes& sizes);

  PageMemory& pages() { return pages_; }
  const PageMemory& pages() const { return pages_; }
  /// Elements from page to page.
  std::size_t page_stride() const { return pages_.page_bytes() / sizeof(std::uint16_t); }
  /// Elements from KV head to KV head.
  std::size_t head_stride() const;
  int value_width() const { return value_width_; }

  /// K of a layer and KV head in page 0; V follows at head_width * P.
  const std::uint16_t* head(int layer, int kv_head) const {
    return data() + offset(layer, kv_head);
  }

  /// Puts one token's key and value (f16 [E] each) of a layer and KV head into `slot` of a touched
  /// page.
  void put(int layer, int kv_head, PageIndex page, int slot, const std::uint16_t* key,
           const std::uint16_t* value);
  /// Copies the first `tokens` slots of a page, all layers.
  void copy(PageIndex from, PageIndex to, int tokens);

 private:
  KvMemory(const KvSizes& sizes, PageMemory pages);
  std::size_t offset(int layer, int kv_head) const;
  const std::uint16_t* data() const {
    return reinterpret_cast<const std::uint16_t*>(pages_.data());
  }
  std::uint16_t* page(PageIndex page) {
    return reinterpret_cast<std::uint16_t*>(pages_.data()) +
           static_cast<std::size_t>(page) * page_stride();
  }

  KvSizes sizes_;
  int value_width_;
  PageMemory pages_;
};

}  // namespace efimd::engine::cpu
