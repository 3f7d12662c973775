// Compiled for AVX-512: see kernels.h on what may be included here.
#include "tests/engine/backend/emulated_amx.h"

#include "engine/backend/cpu/amx/tile_shapes.h"
#include "engine/backend/cpu/avx512/vector_avx512.h"
#include "engine/backend/cpu/avx512/words_avx512.h"
#include "engine/backend/cpu/simd/slab_product.h"

namespace efimd::engine::cpu {
namespace {

int refused = 0;
int multiplied = 0;

/// The instructions of Tiles (tiles.h) in C++ (Intel's manual, volume 2: LDTILECFG, TILELOADD, TDPBSSD,
/// TILESTORED, TILEZERO).
struct Tiles {
  static void configure(const TileShapes& of) {
    shapes = of;
    for (int tile = 0; tile < 8; ++tile)
      if (of.rows[tile] > 16 || of.row_bytes[tile] > 64 || of.palette != 1) ++refused;
    __builtin_memset(tiles, 0, sizeof tiles);
  }
  static void release() { shapes = TileShapes{0, 0, {}, {}, {}}; }
  template <int kTile>
  static void zero() {
    has_shape(kTile);
    __builtin_memset(tiles[kTile], 0, sizeof tiles[kTile]);
  }
  template <int kTile>
  static void load(const void* at, std::size_t stride) {
    if (!has_shape(kTile)) return;
    __builtin_memset(tiles[kTile], 0, sizeof tiles[kTile]);
    for (std::size_t row = 0; row < shapes.rows[kTile]; ++row)
      __builtin_memcpy(tiles[kTile][row], static_cast<const char*>(at) + row * stride,
                       shapes.row_bytes[kTile]);
  }
  template <int kTile>
  static void store(void* at, std::size_t stride) {
    if (!has_shape(kTile)) return;
    for (std::size_t row = 0; row < shapes.rows[kTile]; ++row)
      __builtin_memcpy(static_cast<char*>(at) + row * stride, tiles[kTile][row],
                       shapes.row_bytes[kTile]);
  }
  template <int kSums, int kInputs, int kWeights>
  static void multiply() {
    const bool fit = has_shape(kSums) && has_shape(kInputs) && has_shape(kWeights) &&
                     shapes.rows[kSums] == shapes.rows[kInputs] &&
                     shapes.row_bytes[kSums] == shapes.row_bytes[kWeights] &&
                     shapes.row_bytes[kInputs] == 4 * shapes.rows[kWeights];
    if (!fit) {
      ++refused;
      return;
    }
    ++multiplied;
    for (int m = 0; m < shapes.rows[kSums]; ++m) {
      for (int n = 0; n < shapes.row_bytes[kSums] / 4; ++n) {
        int sum;
        __builtin_memcpy(&sum, tiles[kSums][m] + 4 * n, 4);
        for (int k = 0; k < shapes.row_bytes[kInputs]; ++k)
          sum += tiles[kInputs][m][k] * tiles[kWeights][k / 4][4 * n + k % 4];
        __builtin_memcpy(tiles[kSums][m] + 4 * n, &sum, 4);
      }
    }
  }

 private:
  static bool has_shape(int tile) {
    const bool has = shapes.palette == 1 && shapes.rows[tile] > 0 && shapes.row_bytes[tile] > 0;
    if (!has) ++refused;
    return has;
  }

  static inline TileShapes shapes{0, 0, {}, {}, {}};
  static inline signed char tiles[8][16][64] = {};
};

}  // namespace
}  // namespace efimd::engine::cpu

// It works on the Tiles, the Vector and the Words above.
#include "engine/backend/cpu/amx/tile_matmul.h"

namespace efimd::test {

void multiply_by_emulated_tiles(const engine::cpu::Weights& weights, engine::cpu::RowRange rows,
                                const engine::cpu::Inputs& in, const engine::cpu::Outputs& out) {
  engine::cpu::tile_matmul(weights, rows, in, out);
}

const engine::cpu::CpuKernels& emulated_amx_kernels() {
  static const engine::cpu::CpuKernels kKernels =
      engine::cpu::TileKernels<engine::cpu::avx512_kernels>::table();
  return kKernels;
}

int multiplied_tiles() { return engine::cpu::multiplied; }

int refused_tile_instructions() { return engine::cpu::refused; }

}  // namespace efimd::test
