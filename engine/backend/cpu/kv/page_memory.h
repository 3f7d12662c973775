#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine::cpu {

/// The bytes of all pages of the device, side by side. KvMemory and Kv8Memory say what lies in a
/// page.
///
/// Memory of all pages is reserved at once but touched page by page, so that the process grows with
/// use, and shrinks with give_back(). A page that was not touched since reads as zeros. A used page
/// holds old values after its tokens; readers mask them.
///
/// Thread: engine.  Owns: the memory.  Fails: open() with kNoMemory, and kBadInput without a page.
class PageMemory {
 public:
  static Result<PageMemory> open(int page_count, std::size_t page_bytes);
  PageMemory(PageMemory&& other) noexcept;
  PageMemory& operator=(PageMemory&&) = delete;
  ~PageMemory();

  int page_count() const { return page_count_; }
  std::size_t page_bytes() const { return page_bytes_; }
  /// Bytes of the pages that were touched and not given back.
  std::size_t resident_bytes() const { return touched_count_ * page_bytes_; }

  /// Says that `page` will be written.
  void touch(PageIndex page);
  /// Gives the system the memory of `page`, whose values nobody needs.
  void give_back(PageIndex page);
  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  /// A whole page as it lies in memory.
  std::span<const std::byte> page(PageIndex page) const;
  std::span<std::byte> page_to_write(PageIndex page);

 private:
  PageMemory(int page_count, std::size_t page_bytes)
      : page_count_(page_count), page_bytes_(page_bytes) {}
  std::size_t offset(PageIndex page) const;

  int page_count_;
  std::size_t page_bytes_;
  std::byte* data_ = nullptr;
  std::vector<bool> touched_;
  std::size_t touched_count_ = 0;
};

}  // namespace efimd::engine::cpu
