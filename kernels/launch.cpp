#include "kernels/launch.h"

#include <utility>

#include "kernels/sizes.h"

namespace efimd::kernels {

namespace {

/// A kernel beside its shader: the threads of a block, and what a block takes of the first two axes.
struct Entry {
  const char* name;
  std::array<std::uint32_t, 2> block;
  std::uint32_t spread = 1;                      ///< blocks for one group of the first axis
  std::array<std::uint32_t, 2> joined = {1, 1};  ///< groups of an axis that a block joins
};

constexpr Entry kEntries[] = {
    {"embed_rows", {kElementThreads, 1}},
    {"norm_rows_f32", {kNormBlock, 1}},
    {"quantize_rows_f32", {32 * kQuantizeWarps, 1}, kElementThreads / kQuantizeWarps},
    {"matmul", {32, kMatmulWarps}, 1, {kMatmulWarps, 1}},
    {"store_rows", {32, 1}},
    {"attention", {32, kAttentionWarps}, 1, {1, kAttentionWarps}},
    {"merge_f32", {32, 1}},
    {"activate_f32", {kElementThreads, 1}},
    {"route_f32", {kElementThreads, 1}},
    {"combine_f32", {kElementThreads, 1}}};
constexpr int kEmbedRows = 0;
constexpr int kMatmul = 3;
constexpr int kStoreRows = 4;
constexpr int kAttention = 5;

// Both are estimates that no card has confirmed yet; gpu_bench measures on either side of them.
/// From this many tiles of kTokensOfTile tokens on, more than 16 tokens, a product is a prompt's. Up to there it is bound by
/// bandwidth, and a second reading comes out of the cache.
constexpr std::uint32_t kPromptTilesMin = 3;
/// With fewer blocks of large tiles than this, about the multiprocessors of a large card, small ones do it.
constexpr std::uint32_t kLargeTilesMin = 128;

std::uint32_t over(std::uint32_t count, std::uint32_t by) { return (count + by - 1) / by; }

/// Tokens of a block's tile in the product of these workgroups.
std::uint32_t product_tile(std::uint32_t type, bool many,
                           const std::array<std::uint32_t, 3>& groups) {
  if (!many) return 1;
  if (static_cast<Packed>(type) < Packed::kQ8_0 || groups[1] < kPromptTilesMin)
    return kTokensOfTile;
  const std::uint32_t blocks =
      over(groups[0], kTileLarge) * over(groups[1], kTileLarge / kTokensOfTile) * groups[2];
  return blocks < kLargeTilesMin ? kTileSmall : kTileLarge;
}

}  // namespace

Launch launch_of(int kernel, std::uint32_t type, bool many,
                 const std::array<std::uint32_t, 3>& groups) {
  Entry entry = kEntries[kernel];
  std::string name = entry.name;
  if (kernel == kEmbedRows || kernel == kMatmul) name += "_" + std::to_string(type);
  if (kernel == kStoreRows || kernel == kAttention)
    name += type == static_cast<std::uint32_t>(Kv::kQ8) ? "_q8" : "_f16";
  if (kernel == kMatmul) {
    const std::uint32_t tile = product_tile(type, many, groups);
    name += "_" + std::to_string(tile);
    if (tile > kTokensOfTile) {
      entry.block = {32, tile / 8};
      entry.joined = {tile, tile / kTokensOfTile};
    }
  }
  return {std::move(name),
          {over(groups[0] * entry.spread, entry.joined[0]), over(groups[1], entry.joined[1]),
           groups[2]},
          entry.block};
}

}  // namespace efimd::kernels
