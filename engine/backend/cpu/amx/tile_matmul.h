#pragma once

// Panels x many int8 inputs by AMX, over the Tiles, the Vector and the Words of the file that
// includes this.
//
// A slab's quads of 16 rows are a tile of weights as they stand, made signed when they are unpacked.
// A tile of sums holds the products of 16 tokens and 16 rows over the columns that share a scale.
// Registers take it from there: the integers are exact, and their way into the f32 sums is that of
// simd_quantized.h, operation by operation. So it has the same bits.
//
// Loads of tiles take most of the time if each serves one product, above all if another thread shares
// the core. So each serves two, and inputs are laid out for them (TiledRows): 16 lines of inputs lay
// in 16 places of L1 before. Products of 32, 64 and 128 tokens of Q8_0 are 1.25 to
// 1.3 times as fast as in that form. While another thread shares the core it is 1.0 to 1.2 times.
#include "engine/backend/cpu/amx/tile_shapes.h"
#include "engine/backend/cpu/amx/token_blocks.h"
#include "engine/backend/cpu/simd/simd_panel_slabs.h"

namespace efimd::engine::cpu {
namespace {

/// From so many tokens on tiles are used. Products of 16 are 1.4 (Q4_0) and 1.3 (Q5_0) times as fast
/// as panels as they are, of 12 tokens 1.1 times, of 8 tokens 0.9 times.
constexpr int kTilesFrom = 13;
/// The same of Q8_0, of which nothing is unpacked. Whole steps of 16 would take 1.03 times as long.
constexpr int kTilesFromPlain = 17;
/// Blocks of tokens that share an unpacked slab.
constexpr int kBlocksPerPass = 16;
/// Groups of a slab: those of two panels and of two blocks stay in L1, and so do the products.
constexpr int kTileGroups = 8;
/// Each tile that is loaded serves two products: two blocks times two panels.
constexpr int kBlocksAtOnce = 2;
constexpr int kPanelsAtOnce = 2;
/// Products of a block and a panel that are held until registers take their sums. With four, products
/// of 64 tokens take 1.07 times as long, with one 1.16 times.
constexpr int kProductsHeld = 2;
/// Tokens whose sums registers take at once if a block is not full.
constexpr int kFewTokensOfBlock = 4;

// Tiles by use: four of sums, two of inputs, two of weights.
constexpr int kTileSums = 0;
constexpr int kTileInputs = 4;
constexpr int kTileWeights = 6;

/// The products of a block and a panel.
using Products = std::int32_t[kProductsHeld][kBlockRows][kRows];
/// Rows of a panel for each token of a pass.
using PassSums = float[kBlocksPerPass * kBlockRows][kRows];

/// Up to two blocks in tiles have the rows that they need. More are whole.
template <class Type>
TileShapes tile_shapes(const TokenBlocks& tokens) {
  constexpr int kInputBytes = kGroup / Type::kParts;
  TileShapes shapes;
  const auto set = [&](int tile, int rows, int row_bytes) {
    shapes.rows[tile] = static_cast<std::uint8_t>(rows);
    shapes.row_bytes[tile] = static_cast<std::uint16_t>(row_bytes);
  };
  for (int block = 0; block < kBlocksAtOnce; ++block) {
    const bool fits = tokens.blocks() <= kBlocksAtOnce && block < tokens.blocks();
    const int rows = fits ? tokens.rows_of(block) : kBlockRows;
    set(kTileInputs + block, rows, kInputBytes);
    for (int panel = 0; panel < kPanelsAtOnce; ++panel)
      set(kTileSums + kPanelsAtOnce * block + panel, rows, kPanelLine);
  }
  for (int panel = 0; panel < kPanelsAtOnce; ++panel)
    set(kTileWeights + panel, kInputBytes / 4, kPanelLine);
  return shapes;
}

/// Copies a quantized row to its place among the tiled rows.
void copy_to_tiles(const QuantizedRow& row, int width) {
  for (int group = 0; group < width / kGroup; ++group) {
    const int at = group * kBlockRows;
    __builtin_memcpy(row.tiled_quants + at * kGroup, row.quants + group * kGroup, kGroup);
    row.tiled_scales[at] = row.scales[group];
    row.tiled_totals[at] = row.totals[group];
  }
}

/// What is multiplied at once, over the groups of a slab.
struct TileTask {
  const Slab* slabs;  ///< of `panels` panels
  int panels;
  int blocks;
  TiledRows inputs;          ///< the first block's, in the slab's first group
  std::size_t block_stride;  ///< rows of a group from block to block
};

template <int kBlock, int kPanel>
void multiply_tile() {
  Tiles::multiply<kTileSums + kPanelsAtOnce * kBlock + kPanel, kTileInputs + kBlock,
                  kTileWeights + kPanel>();
}

template <int kBlock, int kPanel>
void store_tile(Products* products, int index) {
  constexpr int kSums = kPanelsAtOnce * kBlock + kPanel;
  Tiles::store<kTileSums + kSums>(products[kSums][index], kPanelLine);
}

/// `count` products of each block and panel, from part `first` of the groups on.
template <class Type>
void multiply_tiles(const TileTask& task, int first, int count, Products* products) {
  constexpr int kParts = Type::kParts;
  constexpr int kPartBytes = kGroup / kParts;
  const bool two_panels = task.panels == kPanelsAtOnce;
  const bool two_blocks = task.blocks == kBlocksAtOnce;
  for (int index = 0; index < count; ++index) {
    const int group = (first + index) / kParts;
    const int part = (first + index) % kParts;
    const std::int8_t* x = task.inputs.quants + group * kBlockRows * kGroup + part * kPartBytes;
    const auto weights = [&](int panel) {
      return task.slabs[panel].quads[group][part * kPartBytes / 4];
    };
    // All at once: each just before its product takes 1.06 times as long while the core is shared.
    Tiles::zero<kTileSums>();
    Tiles::zero<kTileSums + 1>();
    Tiles::zero<kTileSums + 2>();
    Tiles::zero<kTileSums + 3>();
    Tiles::load<kTileInputs>(x, kGroup);
    Tiles::load<kTileWeights>(weights(0), kPanelLine);
    multiply_tile<0, 0>();
    if (two_panels) {
      Tiles::load<kTileWeights + 1>(weights(1), kPanelLine);
      multiply_tile<0, 1>();
    }
    if (two_blocks) {
      Tiles::load<kTileInputs + 1>(x + task.block_stride * kGroup, kGroup);
      multiply_tile<1, 0>();
      if (two_panels) multiply_tile<1, 1>();
    }
    store_tile<0, 0>(products, index);
    if (two_panels) store_tile<0, 1>(products, index);
    if (two_blocks) {
      store_tile<1, 0>(products, index);
      if (two_panels) store_tile<1, 1>(products, index);
    }
  }
}

/// sums[i] += products of N tokens, whose scales and totals `inputs` has.
template <class Type, int N>
void take_sums(const Products& products, int row, const Slab& slab, const TiledRows& inputs,
               int first, int count, float (*sums)[kRows]) {
  constexpr int kParts = Type::kParts;
  Reg acc[N];
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) acc[i] = Vector::load(sums[row + i]);
  for (int index = 0; index < count; ++index) {
    const int group = (first + index) / kParts;
    const int at = group * kBlockRows + row;
    const Reg scale = Vector::load(slab.scales[group][(first + index) % kParts]);
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) {
      const auto* product = reinterpret_cast<const unsigned char*>(products[index][row + i]);
      acc[i] = Vector::fma(Words::to_float(Words::load(product)),
                           Vector::mul(scale, Vector::set(inputs.scales[at + i])), acc[i]);
    }
    if constexpr (Type::kMinimum) {
      static_assert(kParts == 1);
      const Reg minimums = Vector::load(slab.minimums[group]);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i)
        acc[i] = Vector::subtract_product(minimums, Vector::set(inputs.totals[at + i]), acc[i]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < N; ++i) Vector::store(sums[row + i], acc[i]);
}

/// The sums of one block and one panel.
template <class Type>
void take_block(const Products& products, int rows, const Slab& slab, const TiledRows& inputs,
                int first, int count, float (*sums)[kRows]) {
  if (rows > kBlockRows - kFewTokensOfBlock)
    return take_sums<Type, kBlockRows>(products, 0, slab, inputs, first, count, sums);
  for (int row = 0; row < rows; row += kFewTokensOfBlock)
    take_sums<Type, kFewTokensOfBlock>(products, row, slab, inputs, first, count, sums);
}

/// sums[panel][token + block * 16 + i] += slabs * inputs; `rows`: of each block.
template <class Type>
void multiply_blocks(const TileTask& task, const int* rows, int groups, AskedLines& ahead,
                     PassSums* sums, int token) {
  alignas(64) Products products[kBlocksAtOnce * kPanelsAtOnce];
  const int parts = groups * Type::kParts;
  for (int first = 0; first < parts; first += kProductsHeld) {
    const int left = parts - first;
    const int count = left < kProductsHeld ? left : kProductsHeld;
    multiply_tiles<Type>(task, first, count, products);
    for (int block = 0; block < task.blocks; ++block) {
      const std::size_t at = static_cast<std::size_t>(block) * task.block_stride;
      const TiledRows inputs{nullptr, task.inputs.scales + at, task.inputs.totals + at};
      for (int panel = 0; panel < task.panels; ++panel) {
        ahead.ask_some();
        take_block<Type>(products[kPanelsAtOnce * block + panel], rows[block], task.slabs[panel],
                         inputs, first, count, sums[panel] + token + block * kBlockRows);
      }
    }
  }
}

/// Asks L1 for the place of the products of some tokens, which is written soon.
void ask_for_outputs(const Outputs& out, RowRange tokens, int row, int panels) {
  for (int t = tokens.first; t < tokens.last; ++t) {
    const float* at = out.values + static_cast<std::size_t>(t) * out.stride + row;
    for (int p = 0; p < panels; ++p) __builtin_prefetch(at + p * kPanelRows, 1, kL1);
  }
}

/// Up to two panels, from that of `row`, times some tokens, at most kBlocksPerPass. L2 is asked for
/// the next panels meanwhile. `t`: the first token in `out`.
template <class Type>
void multiply_panels_by_tiles(const unsigned char* panel, int panels, int row, int groups,
                              const TokenBlocks& tokens, const TiledRows& in, int t,
                              const Outputs& out) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  static_assert(kTileGroups <= kSlabGroups && kTileGroups % kLayout.unit_groups == 0);
  constexpr int kChunkBytes = (kLayout.head_lines + kLayout.unit_groups * kLayout.group_lines) *
                              kPanelLine * (kTileGroups / kLayout.unit_groups);
  // Quads are unsigned around 128 if they have a center.
  constexpr unsigned kSigned = Type::kCenter == 0 ? 0 : 0x80808080U;
  Slab slabs[kPanelsAtOnce];
  alignas(64) PassSums sums[kPanelsAtOnce];
  const int blocks = tokens.blocks();
  for (int p = 0; p < panels; ++p)
    __builtin_memset(sums[p], 0, static_cast<std::size_t>(blocks * kBlockRows) * sizeof sums[p][0]);
  const std::size_t bytes = bytes_of_panel<Type>(groups);
  const std::size_t all = bytes * static_cast<std::size_t>(panels);
  AskedLines ahead(panel + all, all, panels * blocks * (groups * Type::kParts / kProductsHeld + 1));
  const std::size_t stride = static_cast<std::size_t>(groups) * kBlockRows;
  for (int first = 0; first < groups; first += kTileGroups, panel += kChunkBytes) {
    const int left = groups - first;
    const int taken = left < kTileGroups ? left : kTileGroups;
    for (int p = 0; p < panels; ++p)
      unpack_units<Type, kSigned>(panel + static_cast<std::size_t>(p) * bytes, 0, taken, slabs[p]);
    for (int block = 0; block < blocks; block += kBlocksAtOnce) {
      const int token = block * kBlockRows;
      const int end = token + kBlocksAtOnce * kBlockRows;
      const RowRange rows{token < tokens.skip ? tokens.skip : token,
                          end < tokens.rows ? end : tokens.rows};
      if (taken == left)
        ask_for_outputs(out, {t + rows.first - tokens.skip, t + rows.last - tokens.skip}, row,
                        panels);
      const std::size_t at = static_cast<std::size_t>(tokens.block + block) * stride +
                             static_cast<std::size_t>(first) * kBlockRows;
      const TileTask task{slabs,
                          panels,
                          blocks - block < kBlocksAtOnce ? blocks - block : kBlocksAtOnce,
                          {in.quants + at * kGroup, in.scales + at, in.totals + at},
                          stride};
      const int block_rows[kBlocksAtOnce] = {tokens.rows_of(block), tokens.rows_of(block + 1)};
      multiply_blocks<Type>(task, block_rows, taken, ahead, sums, token);
    }
  }
  for (int i = tokens.skip; i < tokens.rows; ++i)
    for (int p = 0; p < panels; ++p)
      store_rows(out, t + i - tokens.skip, row + p * kPanelRows, Vector::load(sums[p][i]));
}

/// Rows that are whole panels, times inputs that are there as tiles.
template <class Type>
void tile_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  constexpr int kTokensPerPass = kBlocksPerPass * kBlockRows;
  const int groups = weights.cols / kGroup;
  const std::size_t bytes = bytes_of_panel<Type>(groups);
  // Inputs of more tokens would not stay in L2 from panel to panel.
  for (int t = 0; t < in.tokens;) {
    const int at = in.first_tiled + t;
    const int skip = at % kBlockRows;
    const int left = skip + in.tokens - t;
    const TokenBlocks tokens{at / kBlockRows, skip, left < kTokensPerPass ? left : kTokensPerPass};
    Tiles::configure(tile_shapes<Type>(tokens));
    for (int row = rows.first; row < rows.last; row += kPanelsAtOnce * kPanelRows) {
      const int panels = (rows.last - row) / kPanelRows;
      multiply_panels_by_tiles<Type>(
          weights.panels + static_cast<std::size_t>(row / kPanelRows) * bytes,
          panels < kPanelsAtOnce ? panels : kPanelsAtOnce, row, groups, tokens, in.tiled, t, out);
    }
    t += tokens.rows - skip;
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

/// The table of kOther, but products of many tokens by tiles.
template <const CpuKernels& (*kOther)()>
struct TileKernels {
  /// Whole panels by tiles if there are tokens enough, all else as before.
  static void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
    const int from = weights.type == WeightType::kQ8_0 ? kTilesFromPlain : kTilesFrom;
    const bool tiled = in.tokens >= from && in.tiled.quants != nullptr;
    const RowRange panels = tiled ? panels_of(weights, rows) : RowRange{0, 0};
    if (panels.first == panels.last) return kOther().matmul(weights, rows, in, out);
    tile_matmul(weights, panels, in, out);
    if (rows.first < panels.first) kOther().matmul(weights, {rows.first, panels.first}, in, out);
    if (panels.last < rows.last) kOther().matmul(weights, {panels.last, rows.last}, in, out);
  }
  static void quantize(const float* x, int width, const QuantizedRow& out) {
    kOther().quantize(x, width, out);
    if (out.tiled_quants != nullptr) copy_to_tiles(out, width);
  }
  static CpuKernels table() {
    CpuKernels kernels = kOther();
    kernels.matmul = matmul;
    kernels.quantize = quantize;
    kernels.tiles_from = kTilesFrom;
    return kernels;
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
