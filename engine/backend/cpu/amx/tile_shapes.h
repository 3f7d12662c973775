#pragma once

#include <cstdint>

// Internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

/// Rows and bytes of a row of each tile, as LDTILECFG reads them (Intel's manual, volume 1, section 18).
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t unused[14] = {};
  std::uint16_t row_bytes[16] = {};  ///< at most 64, of tiles 0 .. 7
  std::uint8_t rows[16] = {};        ///< at most 16
};
static_assert(sizeof(TileShapes) == 64);

}  // namespace
}  // namespace efimd::engine::cpu
