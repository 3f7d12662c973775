#pragma once

// The quantized inputs of a product, over the Words of the file that includes this.
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/simd_unpack.h"

namespace efimd::engine::cpu {
namespace {

// The cache level that a prefetch fills.
constexpr int kL1 = 3;
constexpr int kL2 = 2;

/// Tokens that share the weights in the caches.
constexpr int kTokensPerSlab = 64;

/// The factors of a slab: the inputs of tokens from `t`, groups from `group`.
struct SlabInputs {
  SlabInputs(const Inputs& in, int cols, int t, int group)
      : stride(static_cast<std::size_t>(cols)),
        group_stride(stride / kGroup),
        x(in.quants + static_cast<std::size_t>(t) * stride + group * kGroup),
        scales(in.scales + static_cast<std::size_t>(t) * group_stride + group),
        offsets(in.offsets + static_cast<std::size_t>(t) * group_stride + group),
        half_offsets(in.half_offsets + 2 * (static_cast<std::size_t>(t) * group_stride) +
                     2 * group),
        totals(in.totals + static_cast<std::size_t>(t) * group_stride + group) {}

  std::size_t stride;        ///< of x, from token to token
  std::size_t group_stride;  ///< of the others
  const std::int8_t* x;
  const float* scales;
  const std::int32_t* offsets;
  const std::int32_t* half_offsets;  ///< two for each of the others
  const float* totals;

  /// On to later tokens.
  void skip(int tokens) {
    const auto count = static_cast<std::size_t>(tokens);
    x += count * stride;
    scales += count * group_stride;
    offsets += count * group_stride;
    half_offsets += 2 * count * group_stride;
    totals += count * group_stride;
  }

  /// On to the next group.
  void advance() {
    x += kGroup;
    ++scales;
    ++offsets;
    half_offsets += 2;
    ++totals;
  }
};

/// The first value of the integer sum of part `part` of a group: it takes the center out of the
/// quads.
template <class Type>
inline Word start_of(const SlabInputs& in, std::size_t at, int part) {
  if constexpr (Type::kCenter == 0) return Words::zero();
  const Word offset = Words::broadcast(Type::kParts == 1 ? in.offsets + at
                                                         : in.half_offsets + 2 * at +
                                                               static_cast<std::size_t>(part));
  return Words::right_signed(offset, Type::kOffsetShift);
}

}  // namespace
}  // namespace efimd::engine::cpu
