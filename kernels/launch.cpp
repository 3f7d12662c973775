#include "kernels/launch.h"

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

}  // namespace

Launch launch_of(int kernel, const std::array<std::uint32_t, 3>& groups) {
  const Entry& entry = kEntries[kernel];
  return {{(groups[0] * entry.spread + entry.joined[0] - 1) / entry.joined[0],
           (groups[1] + entry.joined[1] - 1) / entry.joined[1], groups[2]},
          entry.block};
}

std::string entry_name(int kernel, std::uint32_t type, bool many) {
  std::string name = kEntries[kernel].name;
  if (kernel == kEmbedRows || kernel == kMatmul) name += "_" + std::to_string(type);
  if (kernel == kMatmul) name += many ? "_8" : "_1";
  if (kernel == kStoreRows || kernel == kAttention)
    name += type == static_cast<std::uint32_t>(Kv::kQ8) ? "_q8" : "_f16";
  return name;
}

}  // namespace efimd::kernels
