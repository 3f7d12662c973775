#pragma once

// Panels x many int8 inputs by AMX, over the Tiles, the Vector and the Words of the file that
// includes this.
//
// A slab's quads of 16 rows are a tile of weights as they stand, made signed when they are unpacked.
// A tile of sums holds the products of 16 tokens and 16 rows over the columns that share a scale.
// Registers take it from there: the integers are exact, and their way into the f32 sums is that of
// simd_quantized.h, operation by operation. So it has the same bits.
//
// Loading, multiplying and storing a tile took 12.7 ns of a core, and its f32 operations 8.5. They
// do not overlap: 21.8 ns together, 16 x 16 x 32 products of random numbers (Xeon with AMX).
#include "engine/backend/cpu/amx/tile_shapes.h"
#include "engine/backend/cpu/simd/simd_panel_slabs.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kTokensOfTile = 16;
/// Tokens that share an unpacked slab. Against 64, as in other tables, a product of 128 tokens was
/// 1.03 to 1.09 times as fast (one run of six: 0.94).
constexpr int kTokensPerPass = 128;
/// Panels that are multiplied with 16 tokens while these are in L1.
constexpr int kPanelsAtOnce = 4;
/// Tiles that are multiplied ahead of the one whose sums are taken; a power of two holds them.
constexpr int kTilesAhead = 2;
constexpr int kTilesHeld = 4;

// Tiles by use. A second set has fewer tokens, for the last of a pass.
constexpr int kSums = 0;
constexpr int kInputs = 1;
constexpr int kLastSums = 2;
constexpr int kLastInputs = 3;
constexpr int kTileWeights = 4;

/// `last`: tokens of the second set, 0 .. 15.
template <class Type>
TileShapes tile_shapes(int last) {
  constexpr int kInputBytes = kGroup / Type::kParts;
  TileShapes shapes;
  const auto set = [&](int tile, int rows, int row_bytes) {
    shapes.rows[tile] = static_cast<std::uint8_t>(rows);
    shapes.row_bytes[tile] = static_cast<std::uint16_t>(row_bytes);
  };
  set(kSums, kTokensOfTile, kPanelLine);
  set(kInputs, kTokensOfTile, kInputBytes);
  set(kTileWeights, kInputBytes / 4, kPanelLine);
  if (last > 0) {
    set(kLastSums, last, kPanelLine);
    set(kLastInputs, last, kInputBytes);
  }
  return shapes;
}

/// sums[i] += slab * x[i] for N tokens.
template <class Type, int N>
void multiply_tiles(const Slab& slab, int groups, SlabInputs in, AskedLines& ahead,
                    float (*sums)[kRows]) {
  constexpr int kParts = Type::kParts;
  constexpr int kPartBytes = kGroup / kParts;
  constexpr int kSumsTile = N == kTokensOfTile ? kSums : kLastSums;
  constexpr int kInputsTile = N == kTokensOfTile ? kInputs : kLastInputs;
  alignas(64) std::int32_t products[kTilesHeld][N][kRows];
  const int tiles = groups * kParts;
  const auto multiply = [&](int tile) {
    Tiles::zero<kSumsTile>();
    Tiles::load<kInputsTile>(in.x + tile * kPartBytes, in.stride);
    Tiles::load<kTileWeights>(slab.quads[tile / kParts][tile % kParts * kPartBytes / 4],
                              kPanelLine);
    Tiles::multiply<kSumsTile, kInputsTile, kTileWeights>();
    Tiles::store<kSumsTile>(products[tile % kTilesHeld], kPanelLine);
  };
  for (int tile = 0; tile < kTilesAhead && tile < tiles; ++tile) multiply(tile);
  Reg acc[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) acc[i] = Vector::load(sums[i]);
  const auto at = [&](int group, int i) {
    return static_cast<std::size_t>(group) + static_cast<std::size_t>(i) * in.group_stride;
  };
  for (int group = 0; group < groups; ++group) {
    ahead.ask_some();
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const int tile = group * kParts + part;
      if (tile + kTilesAhead < tiles) multiply(tile + kTilesAhead);
      const Reg scale = Vector::load(slab.scales[group][part]);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) {
        const auto* product =
            reinterpret_cast<const unsigned char*>(products[tile % kTilesHeld][i]);
        acc[i] = Vector::fma(Words::to_float(Words::load(product)),
                             Vector::mul(scale, Vector::set(in.scales[at(group, i)])), acc[i]);
      }
    }
    if constexpr (Type::kMinimum) {
      const Reg minimums = Vector::load(slab.minimums[group]);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i)
        acc[i] = Vector::subtract_product(minimums, Vector::set(in.totals[at(group, i)]), acc[i]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) Vector::store(sums[i], acc[i]);
}

using MultiplyTiles = void (*)(const Slab&, int groups, SlabInputs, AskedLines&,
                               float (*sums)[kRows]);
template <class Type>
constexpr MultiplyTiles kMultiplyTiles[kTokensOfTile] = {
    multiply_tiles<Type, 1>,  multiply_tiles<Type, 2>,  multiply_tiles<Type, 3>,
    multiply_tiles<Type, 4>,  multiply_tiles<Type, 5>,  multiply_tiles<Type, 6>,
    multiply_tiles<Type, 7>,  multiply_tiles<Type, 8>,  multiply_tiles<Type, 9>,
    multiply_tiles<Type, 10>, multiply_tiles<Type, 11>, multiply_tiles<Type, 12>,
    multiply_tiles<Type, 13>, multiply_tiles<Type, 14>, multiply_tiles<Type, 15>,
    multiply_tiles<Type, 16>};

/// Some panels, from that of `row`, times some tokens, at most kPanelsAtOnce and kTokensPerPass. L2
/// is asked for the next panels meanwhile.
template <class Type>
void multiply_panels_by_tiles(const unsigned char* panel, int panels, int row, int groups,
                              RowRange tokens, const Inputs& in, const Outputs& out) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  constexpr int kChunkBytes = (kLayout.head_lines + kLayout.unit_groups * kLayout.group_lines) *
                              kPanelLine * (kSlabGroups / kLayout.unit_groups);
  // Quads are unsigned around 128 if they have a center.
  constexpr unsigned kSigned = Type::kCenter == 0 ? 0 : 0x80808080U;
  Slab slabs[kPanelsAtOnce];
  alignas(64) float sums[kPanelsAtOnce][kTokensPerPass][kRows];
  const int count = tokens.last - tokens.first;
  for (int p = 0; p < panels; ++p)
    __builtin_memset(sums[p], 0, static_cast<std::size_t>(count) * sizeof sums[p][0]);
  const std::size_t bytes = bytes_of_panel<Type>(groups);
  const std::size_t all = bytes * static_cast<std::size_t>(panels);
  AskedLines ahead(panel + all, all,
                   panels * groups * ((count + kTokensOfTile - 1) / kTokensOfTile));
  for (int first = 0; first < groups; first += kSlabGroups, panel += kChunkBytes) {
    const int left = groups - first;
    const int taken = left < kSlabGroups ? left : kSlabGroups;
    for (int p = 0; p < panels; ++p)
      unpack_units<Type, kSigned>(panel + static_cast<std::size_t>(p) * bytes, 0, taken, slabs[p]);
    for (int i = 0; i < count; i += kTokensOfTile) {
      const int together = count - i < kTokensOfTile ? count - i : kTokensOfTile;
      for (int p = 0; p < panels; ++p)
        kMultiplyTiles<Type>[together - 1](
            slabs[p], taken, {in, groups * kGroup, tokens.first + i, first}, ahead, sums[p] + i);
    }
  }
  for (int i = 0; i < count; ++i)
    for (int p = 0; p < panels; ++p)
      store_rows(out, tokens.first + i, row + p * kPanelRows, Vector::load(sums[p][i]));
}

/// Rows that are whole panels.
template <class Type>
void tile_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  const int groups = weights.cols / kGroup;
  const std::size_t bytes = bytes_of_panel<Type>(groups);
  // Inputs of more tokens would not stay in L2 from panel to panel.
  for (int t = 0; t < in.tokens; t += kTokensPerPass) {
    const RowRange tokens{t, in.tokens - t < kTokensPerPass ? in.tokens : t + kTokensPerPass};
    Tiles::configure(tile_shapes<Type>((tokens.last - t) % kTokensOfTile));
    for (int row = rows.first; row < rows.last; row += kPanelsAtOnce * kPanelRows) {
      const int left = (rows.last - row) / kPanelRows;
      multiply_panels_by_tiles<Type>(
          weights.panels + static_cast<std::size_t>(row / kPanelRows) * bytes,
          left < kPanelsAtOnce ? left : kPanelsAtOnce, row, groups, tokens, in, out);
    }
  }
  Tiles::release();
}

void tile_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  switch (weights.type) {
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      return;  // they have no panels
    case WeightType::kQ8_0:
      return tile_matmul<Q8_0>(weights, rows, in, out);
    case WeightType::kQ4_0:
      return tile_matmul<Q4_0>(weights, rows, in, out);
    case WeightType::kQ4_1:
      return tile_matmul<Q4_1>(weights, rows, in, out);
    case WeightType::kQ5_0:
      return tile_matmul<Q5_0>(weights, rows, in, out);
    case WeightType::kQ5_1:
      return tile_matmul<Q5_1>(weights, rows, in, out);
    case WeightType::kQ4_K:
      return tile_matmul<Q4_K>(weights, rows, in, out);
    case WeightType::kQ5_K:
      return tile_matmul<Q5_K>(weights, rows, in, out);
    case WeightType::kQ6_K:
      return tile_matmul<Q6_K>(weights, rows, in, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
