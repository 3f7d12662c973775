#pragma once

// Panels x many int8 inputs: so many tokens that it pays to unpack panels into slabs.
//
// Loads limit a product of many tokens. Against single panels, 64 tokens, both cores of an EPYC
// (Zen 5): Q8_0 1.05-1.2, Q4_0 1.15-1.2, Q5_0 1.25-1.5, Q4_K 1.2 times as fast. The arithmetic of an
// output element is the same as everywhere. The file that includes this has included a slab product
// before: simd/slab_product.h, avx2/slab_product_avx2.h or neon/slab_product_i8mm.h.
#include "engine/backend/cpu/simd/simd_panel_pairs.h"
#include "engine/backend/cpu/simd/slab_sums.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kSlabTokens = 4;
/// Rows of the slabs that are multiplied together: two panels, or one, or a half of one.
constexpr int kSlabsRows = kSlabsAtOnce * kRows;

/// Inputs come by reference: a copy for each call is read in wider words than those that wrote it,
/// so the call would wait until they are in the cache.
using MultiplySlabs = void (*)(const Slab*, int groups, const SlabInputs&, AskedLines&, SlabSums*);
template <class Type>
constexpr MultiplySlabs kMultiplySlabs[kSlabTokens] = {
    multiply_slabs<Type, 1>, multiply_slabs<Type, 2>, multiply_slabs<Type, 3>,
    multiply_slabs<Type, 4>};

/// `count` groups of a part of a panel's rows, from a unit's begin at `at`. Bits of `kFlipped` are
/// turned over in each quad.
template <class Type, unsigned kFlipped = 0>
void unpack_units(const unsigned char* at, int part, int count, Slab& slab) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  for (int first = 0; first < count; first += kLayout.unit_groups) {
    read_head<Type>(at, part, slab, first);
    at += kLayout.head_lines * kPanelLine;
    const int left = count - first;
    const int groups = left < kLayout.unit_groups ? left : kLayout.unit_groups;
    for (int group = 0; group < groups; ++group, at += kLayout.group_lines * kPanelLine) {
      Word quads[kQuads];
      read_quads<Type>(at + 4 * kRows * part, quads);
      if constexpr (kFlipped != 0)
        for (Word& quad : quads) quad = Words::flip(quad, Words::set(kFlipped));
      store_for_product<Type>(slab, first + group, quads);
    }
  }
}

/// The rows in the slabs times some tokens, at most kTokensPerSlab. `pass` says in which panel and,
/// by `pass.part`, in which of its parts the first slab begins; the second follows it.
template <class Type>
void multiply_by_slabs(const PanelPass& pass, RowRange tokens, const Inputs& in,
                       const Outputs& out) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  static_assert(kGroupsAtOnce<Type> % kLayout.unit_groups == 0);
  constexpr int kUnitBytes =
      (kLayout.head_lines + kLayout.unit_groups * kLayout.group_lines) * kPanelLine;
  Slab slabs[kSlabsAtOnce];
  alignas(64) SlabSums sums[kTokensPerSlab];
  const int count = tokens.last - tokens.first;
  __builtin_memset(sums, 0, static_cast<std::size_t>(count) * sizeof sums[0]);
  const std::size_t bytes = bytes_of_panel<Type>(pass.groups);
  AskedLines ahead(pass.panel + pass.ahead, pass.ahead,
                   pass.groups * ((count + kSlabTokens - 1) / kSlabTokens));
  const unsigned char* at = pass.panel;
  for (int first = 0; first < pass.groups; first += kGroupsAtOnce<Type>) {
    const int left = pass.groups - first;
    const int groups = left < kGroupsAtOnce<Type> ? left : kGroupsAtOnce<Type>;
    for (int slab = 0; slab < kSlabsAtOnce; ++slab)
      unpack_units<Type>(at + static_cast<std::size_t>(slab / kPanelParts) * bytes,
                         pass.part + slab % kPanelParts, groups, slabs[slab]);
    at += kGroupsAtOnce<Type> / kLayout.unit_groups * kUnitBytes;
    SlabInputs inputs(in, pass.groups * kGroup, tokens.first, first);
    for (int i = 0; i < count; i += kSlabTokens, inputs.skip(kSlabTokens)) {
      const int together = count - i < kSlabTokens ? count - i : kSlabTokens;
      kMultiplySlabs<Type>[together - 1](slabs, groups, inputs, ahead, sums + i);
    }
  }
  for (int i = 0; i < count; ++i)
    for (int slab = 0; slab < kSlabsAtOnce; ++slab)
      store_rows(out, tokens.first + i, pass.row + slab * kRows, Vector::load(sums[i][slab]));
}

/// Rows that are whole panels.
template <class Type>
void panel_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  constexpr int kTogether = kSlabsRows < kPanelRows ? kPanelRows : kSlabsRows;
  const int groups = weights.cols / kGroup;
  const std::size_t bytes = bytes_of_panel<Type>(groups);
  const auto panel_of = [&](int row) {
    return weights.panels + static_cast<std::size_t>(row / kPanelRows) * bytes;
  };
  // Inputs of more tokens would not stay in L2 from panel to panel.
  for (int t = 0; t < in.tokens; t += kTokensPerSlab) {
    const RowRange tokens{t, in.tokens - t < kTokensPerSlab ? in.tokens : t + kTokensPerSlab};
    const int count = tokens.last - t;
    int row = rows.first;
    if constexpr (kPairTokensMax<Type> != 0)
      for (; count > Words::kTokensAtOnce && count <= kPairTokensMax<Type> &&
             row + kPair * kPanelRows <= rows.last;
           row += kPair * kPanelRows)
        multiply_pair_by_tokens<Type>({panel_of(row), groups, 0, row, 0, 0}, tokens, in, out);
    if constexpr (kPairTokensMax<Type> != kTokensPerSlab)
      for (; count > kPanelTokensMax<Type> && row + kTogether <= rows.last; row += kTogether) {
        for (int part = 0; part < kTogether / kSlabsRows; ++part) {
          const std::size_t ahead = part == 0 ? kTogether / kPanelRows * bytes : 0;
          multiply_by_slabs<Type>({panel_of(row), groups, part, row + part * kRows, 0, ahead},
                                  tokens, in, out);
        }
      }
    for (; row < rows.last; row += kPanelRows)
      multiply_tokens<Type>({panel_of(row), groups, 0, row, 0, 0}, tokens, in, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
