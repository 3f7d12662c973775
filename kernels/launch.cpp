#include "kernels/launch.h"

#include <iterator>
#include <utility>

#include "kernels/sizes.h"

namespace efimd::kernels {

namespace {

/// A kernel beside its shader: the threads of a block, and what a block takes of the first two axes. Products have more than one
/// form.
struct Entry {
  Kernel kernel;
  const char* name;
  std::array<std::uint32_t, 2> block;
  std::array<std::uint32_t, 2> joined = {1, 1};  ///< groups of an axis that a block joins
  std::array<std::uint32_t, 2> spread = {1, 1};  ///< or blocks for a group of it
};

constexpr Entry kEntries[] = {
    {Kernel::kEmbedRows, "embed_rows", {kElementThreads, 1}},
    {Kernel::kNormRows, "norm_rows_f32", {kNormBlock, 1}},
    {Kernel::kMatmul, "matmul", {}},
    {Kernel::kMatmulHalves, "matmul_halves", {}},
    {Kernel::kStoreRows, "store_rows", {32, 1}},
    {Kernel::kAttention, "attention", {32, kAttentionWarps}, {kAttentionWarps, 1}},
    {Kernel::kAttentionTiles, "attention_tiles", {32, kHeadsOfTile / kHeadsOfWarp}},
    {Kernel::kMerge,
     "merge_f32",
     {kElementThreads, 1},
     {1, 1},
     {1, kFormElements / kElementThreads}},
    {Kernel::kActivate,
     "activate_f32",
     {kElementThreads, 1},
     {1, 1},
     {kFormElements / kElementThreads, 1}},
    {Kernel::kRoute, "route_f32", {kElementThreads, 1}},
    {Kernel::kCombine, "combine_f32", {kElementThreads, 1}}};
static_assert(std::size(kEntries) == static_cast<std::size_t>(Kernel::kCopy));
static_assert(rows_stand_at_their_kernels(kEntries));

const Entry& entry_of(Kernel kernel) { return kEntries[static_cast<std::size_t>(kernel)]; }

// No card has confirmed these two; gpu_bench measures on either side of them.
/// From this many tiles of kTokensOfTile tokens on a product is a prompt's: the third reading of the weights out of the
/// cache takes longer than the first one out of memory.
constexpr std::uint32_t kPromptTilesMin = 3;
/// With fewer blocks of large tiles than this, about the multiprocessors of a large card, small ones do it.
constexpr std::uint32_t kLargeTilesMin = 128;

std::uint32_t over(std::uint32_t count, std::uint32_t by) { return (count + by - 1) / by; }

std::uint32_t halves_tile(const std::array<std::uint32_t, 3>& groups) {
  const std::uint32_t blocks = over(groups[0], kHalvesTileLarge) *
                               over(groups[1], kHalvesTileLarge / kTokensOfTile) * groups[2];
  return blocks < kLargeTilesMin ? kHalvesTileSmall : kHalvesTileLarge;
}

bool is_quantized(std::uint32_t type) { return static_cast<Packed>(type) >= Packed::kQ8_0; }

/// A block's share of a product.
struct Shape {
  std::uint32_t rows, tokens, warps;
};

Shape shape_of_product(Kernel kernel, std::uint32_t type, bool many,
                       const std::array<std::uint32_t, 3>& groups) {
  const bool halves = kernel == Kernel::kMatmulHalves;
  if (!many && !halves) return {kMatmulWarps, 1, kMatmulWarps};
  if (!halves && !is_quantized(type)) return {kMatmulWarps, kTokensOfTile, kMatmulWarps};
  if (!many || groups[1] < kPromptTilesMin)
    return halves ? Shape{kHalvesRows, kTokensOfTile, kHalvesWarps}
                  : Shape{kFewRows, kTokensOfTile, kFewWarps};
  if (!halves) return {kTileRows, kTileRows, kTileRows / 8};
  const std::uint32_t tile = halves_tile(groups);
  return {tile, tile, tile / 16};
}

// In products, the first axis of the grid goes through tokens.

Launch launch_of_product(Kernel kernel, std::uint32_t type, bool many,
                         const std::array<std::uint32_t, 3>& groups) {
  const Shape shape = shape_of_product(kernel, type, many, groups);
  const std::uint32_t tokens = many ? over(groups[1], shape.tokens / kTokensOfTile) : groups[1];
  return {std::string(entry_of(kernel).name) + "_" + std::to_string(type) + "_" +
              std::to_string(shape.tokens),
          {tokens, over(groups[0], shape.rows), groups[2]},
          {32, shape.warps}};
}

}  // namespace

Launch launch_of(Kernel kernel, std::uint32_t type, bool many,
                 const std::array<std::uint32_t, 3>& groups) {
  if (kernel == Kernel::kMatmul || kernel == Kernel::kMatmulHalves)
    return launch_of_product(kernel, type, many, groups);
  const Entry& entry = entry_of(kernel);
  std::string name = entry.name;
  if (kernel == Kernel::kEmbedRows) name += "_" + std::to_string(type);
  if (kernel == Kernel::kAttentionTiles) {
    name += "_" + std::to_string(type);
    if (groups[2] == 1) name += "_whole";
  }
  if (kernel == Kernel::kStoreRows || kernel == Kernel::kAttention)
    name += attention_form(type) == Kv::kQ8 ? "_q8" : "_f16";
  return {std::move(name),
          {over(groups[0] * entry.spread[0], entry.joined[0]),
           over(groups[1] * entry.spread[1], entry.joined[1]), groups[2]},
          entry.block};
}

}  // namespace efimd::kernels
