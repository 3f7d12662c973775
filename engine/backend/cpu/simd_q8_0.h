#pragma once

// Q8_0 weights x int8 inputs, over the Vector of the file that includes this and a Tier of its own
// for what differs (see kernels_avx512.cpp and kernels_avx2.cpp).
//
// As many weight rows as a register has lanes, one row per lane, are transposed from the file's
// blocks into a slab that stays in L1, then multiplied with all tokens of the step: weights come
// from memory once per step.
//
//   file    [R rows][cols / 32] blocks of 34 bytes: f16 scale, int8 x 32
//   slab    quads [groups][8][R rows][4]: byte i of quad j is weight 4j + i of the group
//   x       int8 [T][cols], four of them broadcast to all rows
//
// The sum over a group is exact, in integers; then sum += float(group) * (w_scale * x_scale), in
// the order of the groups, one lane per row, whatever the number of tokens.
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/simd_dot.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kRows = Vector::kLanes;
constexpr int kQuads = kGroup / 4;
constexpr int kTokensPerSlab = 64;
constexpr int kSlabGroups = 32;
// At few tokens memory decides: short slabs keep it busy while they are multiplied. Against slabs
// of 32 groups, AVX-512, one core of a busy Xeon (Emerald Rapids, 2 cores, cols 4864):
// 14.2 -> 18.5 GB/s at one token, 10.5 -> 15 at four.
constexpr int kFewTokens = 16;
constexpr int kSlabGroupsFew = 4;
constexpr int kAheadGroups = 16;  // of prefetch, in the order of reading

struct alignas(64) Slab {
  unsigned char quads[kSlabGroups][kQuads][4 * kRows];
  float scales[kSlabGroups][kRows];
  std::uint16_t halves[kSlabGroups][kRows];
};

/// What a slab is multiplied with: the inputs of tokens from `t`, groups from `group`.
struct SlabInputs {
  SlabInputs(const Inputs& in, int cols, int t, int group)
      : stride(static_cast<std::size_t>(cols)),
        group_stride(stride / kGroup),
        x(in.quants + static_cast<std::size_t>(t) * stride + group * kGroup),
        scales(in.scales + static_cast<std::size_t>(t) * group_stride + group),
        sums(in.sums + static_cast<std::size_t>(t) * group_stride + group) {}

  std::size_t stride;        ///< of x, from token to token
  std::size_t group_stride;  ///< of scales and sums
  const std::int8_t* x;
  const float* scales;
  const std::int32_t* sums;
};

/// `groups` blocks of R rows from `at`; meanwhile asks memory for the same of `next`.
template <class Tier>
void pack_slab(const unsigned char* at, std::size_t stride, int groups, const unsigned char* next,
               Slab& slab) {
  for (int group = 0; group < groups; ++group, at += kQ8_0Bytes, next += kQ8_0Bytes) {
    for (int r = 0; r < kRows; ++r) {
      __builtin_memcpy(&slab.halves[group][r], at + static_cast<std::size_t>(r) * stride, 2);
      __builtin_prefetch(next + static_cast<std::size_t>(r) * stride);
    }
    Tier::pack_half_group(at + 2, stride, slab.quads[group]);
    Tier::pack_half_group(at + 18, stride, slab.quads[group] + kQuads / 2);
  }
  for (int group = 0; group < groups; ++group)
    Vector::store(slab.scales[group], Vector::load_half(slab.halves[group]));
}

/// Copies `groups` blocks of the rows that there are, so that a slab can be packed from R rows
/// where fewer are left.
void copy_rows(const unsigned char* at, std::size_t stride, int rows, int groups,
               unsigned char* copy) {
  const std::size_t bytes = static_cast<std::size_t>(groups) * kQ8_0Bytes;
  __builtin_memset(copy, 0, kRows * bytes);
  for (int r = 0; r < rows; ++r)
    __builtin_memcpy(copy + static_cast<std::size_t>(r) * bytes,
                     at + static_cast<std::size_t>(r) * stride, bytes);
}

/// The block that is kAheadGroups groups after group `group` of the rows from n, in the order in
/// which they are read; `otherwise` behind the last row.
const unsigned char* ahead_of(const Weights& weights, RowRange rows, int n, int group,
                              const unsigned char* otherwise) {
  const int groups = weights.cols / kGroup;
  const int row = n + (group + kAheadGroups) / groups * kRows;
  if (row + kRows > rows.last) return otherwise;
  return weights.data + static_cast<std::size_t>(row) * weights.row_bytes +
         static_cast<std::size_t>((group + kAheadGroups) % groups) * kQ8_0Bytes;
}

/// Up to R rows from n, for tokens t .. t + tokens - 1 (at most 64).
template <class Tier>
void multiply_rows(const Weights& weights, RowRange rows, int n, const Inputs& in, int t,
                   int tokens, const Outputs& out) {
  Slab slab;
  alignas(64) float sums[kTokensPerSlab][kRows];
  __builtin_memset(sums, 0, static_cast<std::size_t>(tokens) * sizeof sums[0]);
  unsigned char copy[kRows * kSlabGroups * kQ8_0Bytes];
  const int count = rows.last - n < kRows ? rows.last - n : kRows;
  const int groups = weights.cols / kGroup;
  const int slab_groups = tokens <= kFewTokens ? kSlabGroupsFew : kSlabGroups;
  const std::size_t stride = weights.row_bytes;
  const unsigned char* row = weights.data + static_cast<std::size_t>(n) * stride;
  for (int first = 0; first < groups; first += slab_groups) {
    const int taken = groups - first < slab_groups ? groups - first : slab_groups;
    const unsigned char* at = row + static_cast<std::size_t>(first) * kQ8_0Bytes;
    if (count < kRows) {
      copy_rows(at, stride, count, taken, copy);
      pack_slab<Tier>(copy, static_cast<std::size_t>(taken) * kQ8_0Bytes, taken, copy, slab);
    } else {
      pack_slab<Tier>(at, stride, taken, ahead_of(weights, rows, n, first, at), slab);
    }
    for (int i = 0; i < tokens; i += Tier::kTokensAtOnce) {
      const int left = tokens - i;
      const int together = left < Tier::kTokensAtOnce ? left : Tier::kTokensAtOnce;
      Tier::kMultiplySlab[together - 1](slab, taken, {in, weights.cols, t + i, first}, sums + i);
    }
  }
  for (int i = 0; i < tokens; ++i) Tier::store_sums(sums[i], count, out, t + i, n);
}

template <class Tier>
void q8_0_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  for (int n = rows.first; n < rows.last; n += kRows) {
    for (int t = 0; t < in.tokens; t += kTokensPerSlab) {
      const int tokens = in.tokens - t < kTokensPerSlab ? in.tokens - t : kTokensPerSlab;
      multiply_rows<Tier>(weights, rows, n, in, t, tokens, out);
    }
  }
}

/// matmul of every weight type.
template <class Tier>
void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  switch (weights.type) {
    case WeightType::kF32:
      return dot_matmul<FloatWeights>(weights, rows, in, out);
    case WeightType::kF16:
      return dot_matmul<HalfWeights>(weights, rows, in, out);
    case WeightType::kBF16:
      return dot_matmul<BfloatWeights>(weights, rows, in, out);
    case WeightType::kQ8_0:
      return q8_0_matmul<Tier>(weights, rows, in, out);
    default:
      return scalar_kernels().matmul(weights, rows, in, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
