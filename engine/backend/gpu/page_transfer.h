#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/types.h"

namespace efimd::engine::gpu {

/// KV pages on their way between a device and the host, several at once, through memory that the
/// device reads and writes by itself. A page is written while the next one comes from the disk. It
/// is read while the last one is being stored.
///
/// Thread: engine.  Owns: staging memory for kInFlight pages each way; the device outlives it.
/// Fails as the device does. If a write fails later, the next call reports it.
class PageTransfer {
 public:
  static constexpr std::size_t kInFlight = 4;

  /// `layers` is the KV of each layer, of pages of `layer_page_bytes`.
  PageTransfer(GpuDevice& device, std::vector<Range> layers, std::size_t layer_page_bytes)
      : device_(&device), layers_(std::move(layers)), layer_page_bytes_(layer_page_bytes) {}
  Result<void> allocate();

  std::size_t page_bytes() const { return layers_.size() * layer_page_bytes_; }
  Range range(std::size_t layer, PageIndex page) const {
    return {layers_[layer].buffer, static_cast<std::size_t>(page) * layer_page_bytes_,
            layer_page_bytes_};
  }

  /// Begins to read the page: a later read() finds it there unless changed() was called.
  void expect(PageIndex page);
  /// Call it before the page's memory changes; without a page, any page's.
  void changed(PageIndex page);
  void changed() { expected_.clear(); }
  Result<void> read(PageIndex page, std::span<std::byte> bytes);
  /// Returns before the page is there; steps that begin later see it.
  Result<void> write(PageIndex page, std::span<const std::byte> bytes);
  /// Other memory of the device, `to.bytes` of it, in pieces of a page.
  Result<void> send(const Range& to, std::span<const std::byte> bytes);

 private:
  enum class Towards { kDevice, kHost };
  /// Memory of the host, whose slots are used in turn.
  struct Staging {
    BufferId memory = BufferId::kNone;
    std::array<CopyTicket, kInFlight> copies = {};  ///< 0: none is under way
    std::size_t next = 0;
  };
  struct Expected {
    PageIndex page;
    std::size_t slot;
  };

  Result<std::size_t> free_slot(Staging& staging);
  std::span<std::byte> mapped(const Staging& staging, std::size_t slot) const;
  std::vector<Operation> page_copies(const Staging& staging, std::size_t slot, PageIndex page,
                                     Towards towards) const;
  Result<void> begin(Staging& staging, std::size_t slot, std::span<const Operation> copies);
  Result<std::size_t> begin_read(PageIndex page);

  GpuDevice* device_;
  std::vector<Range> layers_;
  std::size_t layer_page_bytes_;
  Staging in_, out_;
  std::vector<Expected> expected_;  ///< in out_
};

}  // namespace efimd::engine::gpu
