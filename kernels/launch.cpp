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
    {Kernel::kAttention, "attention", {32, kAttentionWarps}, {1, kAttentionWarps}},
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
    {Kernel::kNormHeads, "norm_heads", {}},
    {Kernel::kNormGates, "norm_gates", {}},
    {Kernel::kRoute, "route_f32", {kElementThreads, 1}},
    {Kernel::kCombine, "combine_f32", {kElementThreads, 1}}};
static_assert(std::size(kEntries) == static_cast<std::size_t>(Kernel::kCopy));
static_assert(rows_stand_at_their_kernels(kEntries));

const Entry& entry_of(Kernel kernel) { return kEntries[static_cast<std::size_t>(kernel)]; }

// Both are estimates that no card has confirmed yet; gpu_bench measures on either side of them.
/// From this many tiles of kTokensOfTile tokens on, more than 16 tokens, a product is a prompt's. Up to there it is bound by
/// bandwidth, and a second reading comes out of the cache.
constexpr std::uint32_t kPromptTilesMin = 3;
/// With fewer blocks of large tiles than this, about the multiprocessors of a large card, small ones do it.
constexpr std::uint32_t kLargeTilesMin = 128;

std::uint32_t over(std::uint32_t count, std::uint32_t by) { return (count + by - 1) / by; }

/// For that many tokens: the larger of two tiles if its blocks fill a card.
std::uint32_t prompt_tile(const std::array<std::uint32_t, 3>& groups, std::uint32_t small,
                          std::uint32_t large) {
  const std::uint32_t blocks =
      over(groups[0], large) * over(groups[1], large / kTokensOfTile) * groups[2];
  return blocks < kLargeTilesMin ? small : large;
}

bool is_quantized(std::uint32_t type) { return static_cast<Packed>(type) >= Packed::kQ8_0; }

/// A block's share of a product.
struct Shape {
  std::uint32_t rows, tokens, warps;
};

Shape shape_of_product(Kernel kernel, std::uint32_t type, bool many,
                       const std::array<std::uint32_t, 3>& groups) {
  const bool prompt = groups[1] >= kPromptTilesMin;
  if (kernel == Kernel::kMatmulHalves) {
    if (!many || !prompt)
      return {kHalvesRows, many ? groups[1] * kTokensOfTile : kTokensOfTile, kHalvesWarps};
    const std::uint32_t tile = prompt_tile(groups, kHalvesTileSmall, kHalvesTileLarge);
    return {tile, tile, tile / 16};
  }
  if (!many) return {kMatmulWarps, 1, kMatmulWarps};
  if (!is_quantized(type)) return {kMatmulWarps, kTokensOfTile, kMatmulWarps};
  if (!prompt) return {kFewRows, groups[1] * kTokensOfTile, kFewWarps};
  const std::uint32_t tile = prompt_tile(groups, kTileSmall, kTileLarge);
  return {tile, tile, tile / 8};
}
static_assert((kPromptTilesMin - 1) * kTokensOfTile == kHalvesTokens);

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

Launch launch_of_fused(Kernel kernel, std::uint32_t type, bool many,
                       const std::array<std::uint32_t, 3>& groups) {
  const bool heads = kernel == Kernel::kNormHeads, quantized = is_quantized(type);
  const std::uint32_t warps = !quantized ? kHalvesWarps : many ? kFewWarps : kNormedWarps;
  const std::uint32_t pairs = !quantized ? kHalvesRows / 2 : many ? kFewRows / 2 : kNormedWarps;
  const std::uint32_t gates = quantized ? kNormedGates : kHalvesRows;
  return {std::string(entry_of(kernel).name) + "_" + std::to_string(type) + "_" +
              std::to_string(many ? kTokensOfTile : 1),
          {1, over(groups[0], heads ? pairs : gates), 1},
          {32, warps}};
}

}  // namespace

Launch launch_of(Kernel kernel, std::uint32_t type, bool many,
                 const std::array<std::uint32_t, 3>& groups) {
  if (kernel == Kernel::kMatmul || kernel == Kernel::kMatmulHalves)
    return launch_of_product(kernel, type, many, groups);
  if (kernel == Kernel::kNormHeads || kernel == Kernel::kNormGates)
    return launch_of_fused(kernel, type, many, groups);
  const Entry& entry = entry_of(kernel);
  std::string name = entry.name;
  if (kernel == Kernel::kEmbedRows) name += "_" + std::to_string(type);
  if (kernel == Kernel::kAttentionTiles) {
    name = (many ? name : "attention_token") + "_" + std::to_string(type);
    if (many && groups[2] == 1) name += "_whole";
  }
  if (kernel == Kernel::kStoreRows || kernel == Kernel::kAttention)
    name += attention_form(type) == Kv::kQ8 ? "_q8" : "_f16";
  return {std::move(name),
          {over(groups[0] * entry.spread[0], entry.joined[0]),
           over(groups[1] * entry.spread[1], entry.joined[1]), groups[2]},
          entry.block};
}

}  // namespace efimd::kernels
