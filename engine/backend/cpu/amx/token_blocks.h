#pragma once

#include "engine/backend/cpu/kernels/kernels.h"

// Internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

/// Some rows of the tiled inputs: of the blocks from `block` on, all but some rows of the first and
/// of the last one.
struct TokenBlocks {
  int block;  ///< the first
  int skip;   ///< rows of it
  int rows;   ///< to the last one, with those
  int blocks() const { return (rows + kBlockRows - 1) / kBlockRows; }
  /// Rows of the `index`th block, from its first on.
  int rows_of(int index) const {
    const int left = rows - index * kBlockRows;
    return left < kBlockRows ? left : kBlockRows;
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
