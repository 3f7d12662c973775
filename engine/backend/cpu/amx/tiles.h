#pragma once

#include <cstddef>

#include "engine/backend/cpu/amx/tile_shapes.h"

// The tile registers of AMX. Internal linkage: see kernels.h on why.
//
// Instructions are written out, because the compilers' own functions take no template arguments as
// registers (g++ 12).
namespace efimd::engine::cpu {
namespace {

struct Tiles {
  /// Zeroes all tiles, too.
  static void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" ::"m"(shapes)); }
  /// A core whose tiles are in use sleeps less deeply, and each switch of threads saves them.
  static void release() { asm volatile("tilerelease" ::: "memory"); }
  template <int kTile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
  }
  template <int kTile>
  static void load(const void* at, std::size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(at), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* at, std::size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(at), "r"(stride), "i"(kTile) : "memory");
  }
  /// Sums [tokens][16 rows] += inputs [tokens][quads][4] * weights [quads][16 rows][4]; all signed
  /// bytes, exactly.
  template <int kSums, int kInputs, int kWeights>
  static void multiply() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kSums), "i"(kInputs), "i"(kWeights));
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
