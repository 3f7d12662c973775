#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine::cpu {

/// The K and V of all pages of the device, in f16.
///
///   page     [L][Hk] of K then V
///   K        [E][P]   tokens side by side: a score is a lane, summed over E without a reduction
///   V        [P][Ev]  elements side by side; Ev = E rounded up to 16, the rest stays 0
///
/// A key enters rotated. Memory of all pages is reserved at once but touched page by page, so that
/// the process grows with use. A page that was used holds old values behind its tokens: readers
/// mask them.
///
/// Thread: engine, except put(): one thread for each token and KV head.  Owns: the memory.
/// Fails: open() with kNoMemory.
class KvMemory {
 public:
  struct Sizes {
    int layers;
    int kv_heads;
    int head_width;
    int page_count;
  };
  static Result<KvMemory> open(const Sizes& sizes);
  KvMemory(KvMemory&& other) noexcept;
  KvMemory& operator=(KvMemory&&) = delete;
  ~KvMemory();

  int page_count() const { return sizes_.page_count; }
  std::size_t page_bytes() const { return page_elements_ * sizeof(std::uint16_t); }
  /// Elements from page to page.
  std::size_t page_stride() const { return page_elements_; }
  int value_width() const { return value_width_; }
  /// Bytes of the pages that were touched so far.
  std::size_t resident_bytes() const { return touched_count_ * page_bytes(); }

  /// K of a layer and KV head in page 0; V follows at head_width * P.
  const std::uint16_t* head(int layer, int kv_head) const {
    return data_ + head_offset(layer, kv_head);
  }

  /// Says that `page` will be written.
  void touch(PageIndex page);
  /// Puts one token's key and value (f16 [E] each) of a layer and KV head into `slot` of a touched
  /// page.
  void put(int layer, int kv_head, PageIndex page, int slot, const std::uint16_t* key,
           const std::uint16_t* value);
  /// A whole page as it lies in memory.
  std::span<const std::byte> page(PageIndex page) const;
  std::span<std::byte> page_to_write(PageIndex page);
  /// Copies the first `tokens` slots of a page, all layers.
  void copy(PageIndex from, PageIndex to, int tokens);

 private:
  explicit KvMemory(const Sizes& sizes);
  std::size_t head_elements() const;
  std::size_t head_offset(int layer, int kv_head) const;

  Sizes sizes_;
  int value_width_;
  std::size_t page_elements_;
  std::uint16_t* data_ = nullptr;
  std::vector<bool> touched_;
  std::size_t touched_count_ = 0;
};

}  // namespace efimd::engine::cpu
