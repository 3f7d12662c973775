#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "kernels/operations.h"

namespace efimd::engine::gpu {

using kernels::Kernel;

enum class BufferId : std::uint32_t { kNone = 0 };

/// Bytes of a buffer.
struct Range {
  BufferId buffer = BufferId::kNone;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  bool operator==(const Range&) const = default;
};

inline constexpr std::size_t kOperandsMax = 8;
inline constexpr std::size_t kSizesBytesMax = 64;

/// One operation: its sizes (kernels/sizes.h), and its operands in the kernel's order. Equal
/// operations do the same to the operands' contents, so that a list of them can be prepared once
/// and run again.
struct Operation {
  Kernel kernel = Kernel::kCopy;
  /// Products and kEmbedRows: the weight type, kernels::Packed.  kStoreRows: kernels::Kv.
  /// kAttention: kernels::attention_type().  kAttentionTiles: pieces of 32 elements of a head.
  std::uint32_t type = 0;
  /// Products: whether workgroups take kTokensOfTile tokens, and no experts. kAttention: whether
  /// heads of tokens share their reading, if the device can.
  bool many = false;
  std::array<std::uint32_t, 3> groups = {1, 1, 1};
  std::array<Range, kOperandsMax> operands = {};
  std::array<std::byte, kSizesBytesMax> sizes = {};

  template <class Sizes>
  void set_sizes(const Sizes& values) {
    static_assert(sizeof(Sizes) <= kSizesBytesMax && std::is_trivially_copyable_v<Sizes>);
    std::memcpy(sizes.data(), &values, sizeof values);
  }
  bool operator==(const Operation&) const = default;
};

/// The place of a buffer. Memory that the host writes or reads is mapped for as long as the buffer
/// lives. The host must not read memory that it writes, because over a bus each word would take a
/// microsecond. Memory that the host reads is written only by the device.
enum class Memory : std::uint8_t { kDevice, kHostWrites, kHostReads };

struct DeviceLimits {
  std::size_t range_bytes_max = 0;   ///< of one operand
  std::size_t offset_alignment = 4;  ///< of an operand
  std::size_t memory_bytes = 0;      ///< that this program may take
  /// kMatmul of quantized weights takes kTokensOfTile tokens a workgroup from so many on; 0: never.
  int quantized_tile_min = 0;
  bool f16_products = false;  ///< kMatmulHalves of f16 weights
  bool bf16_products = false;
  bool f16_attention = false;     ///< kAttentionTiles
  bool shared_attention = false;  ///< kAttention of kernels::attention_tile() rows a workgroup
};

/// Copies that were begun; later ones have greater numbers.
using CopyTicket = std::uint64_t;

/// A processor with memory of its own that runs lists of operations. A GPU backend needs nothing
/// else.
///
/// Thread: one.  Owns: its buffers, which live as long as the device.
/// Fails with kNoMemory or kDeviceLost; after kDeviceLost with that for good.
class GpuDevice {
 public:
  virtual ~GpuDevice() = default;

  virtual std::string kind() const = 0;  ///< "cuda", "vulkan"
  virtual std::string name() const = 0;
  virtual DeviceLimits limits() const = 0;

  virtual Result<BufferId> allocate(std::size_t bytes, Memory where) = 0;
  /// The memory of a buffer that the host writes or reads.
  virtual std::span<std::byte> mapped(BufferId buffer) = 0;
  /// Runs the operations one after another and waits. A list that was run before costs one
  /// submission.
  virtual Result<void> run(std::span<const Operation> operations) = 0;
  /// Begins copies in their order and returns. Operations that run later see their results. Until
  /// finish() their operands belong to the device.
  virtual Result<CopyTicket> begin_copies(std::span<const Operation> copies) = 0;
  /// Waits for these copies and all that began before them.
  virtual Result<void> finish(CopyTicket copies) = 0;
};

}  // namespace efimd::engine::gpu
