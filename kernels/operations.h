#pragma once

#include <cstddef>
#include <cstdint>

namespace efimd::kernels {

/// The operations of a device. Each is a kernel here and a shader of the same name in shaders/;
/// both list the operands. sizes.h has the sizes. Tables of operations are indexed by it.
enum class Kernel : std::uint8_t {
  kEmbedRows,
  kNormRows,
  kMatmul,
  kMatmulHalves,  ///< if gpu::DeviceLimits has it for the type; no shader
  kStoreRows,
  kAttention,
  kAttentionTiles,  ///< instead of it if gpu::DeviceLimits has it and the head is one of its widths; no shader
  kMerge,
  kActivate,
  kRoute,
  kCombine,
  kCopy,  ///< bytes from operand 0 to operand 1; no kernel, no shader, no workgroups
};
inline constexpr std::size_t kKernels = static_cast<std::size_t>(Kernel::kCopy) + 1;

/// Whether each row of a table stands at the index of the operation that it names in `kernel`.
template <class Table>
constexpr bool rows_stand_at_their_kernels(const Table& rows) {
  std::size_t index = 0;
  for (const auto& row : rows)
    if (static_cast<std::size_t>(row.kernel) != index++) return false;
  return true;
}

}  // namespace efimd::kernels
