#pragma once

// Panels x many int8 inputs: so many tokens that it pays to unpack panels into slabs.
//
// Two slabs are multiplied together if there are registers enough, because a broadcast input then
// serves both. Loads limit a product of many tokens. Against panels as they are, 64 tokens, both
// cores of an EPYC (Zen 5): Q8_0 1.05-1.2, Q4_0 1.15-1.2, Q5_0 1.25-1.5, Q4_K 1.2 times as fast.
// The arithmetic of an output element is the same as everywhere.
#include "engine/backend/cpu/simd/simd_panels.h"

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "engine/backend/cpu/neon/slab_pairs.h"
#endif

namespace efimd::engine::cpu {
namespace {

/// Up to this many tokens, panels are multiplied as they are. 16 tokens against slabs, in turn:
/// Q8_0 1.6, Q4_0 1.03 to 1.1, Q5_0 1.1, Q4_K 1.2 times as fast; 24 tokens are even.
constexpr int kPanelTokensMax = 16;
constexpr int kSlabsAtOnce = Words::kSlabsAtOnce;
constexpr int kSlabTokens = 4;
/// Rows of the slabs that are multiplied together: two panels, or a half of one.
constexpr int kSlabsRows = kSlabsAtOnce * kRows;

/// One float of each row of the slabs.
using SlabSums = float[kSlabsAtOnce][kRows];

/// Asks L2 for memory that is read soon, some lines at a time: a core has room for few requests,
/// and waits if there are more. Two lines with each group were measured against dozens with each
/// slab. Products of 64 tokens on both cores of a Xeon (AVX-512): Q8_0 1.13, Q4_0 1.07, Q4_K and
/// Q6_K 1.0 to 1.1 times as fast.
class AskedLines {
 public:
  AskedLines(const unsigned char* at, std::size_t bytes, int times)
      : at_(at),
        end_(at + bytes),
        bytes_((bytes / kPanelLine / static_cast<unsigned>(times) + 1) * kPanelLine) {}
  void ask_some() {
    for (const unsigned char* const end = at_ + bytes_; at_ < end && at_ < end_; at_ += kPanelLine)
      __builtin_prefetch(at_, 0, kL2);
  }

 private:
  const unsigned char* at_;
  const unsigned char* end_;
  std::size_t bytes_;  ///< each time
};

/// sums[i] += slabs * x[i] for N tokens.
template <class Type, int N>
void multiply_slabs(const Slab* slabs, int groups, SlabInputs in, AskedLines& ahead,
                    SlabSums* sums) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  for (int group = 0; group < groups; ++group) ahead.ask_some();
  multiply_slab_pairs<Type, N>(*slabs, groups, in, sums);
#else
  using Products = Words::Products<Type::kTop>;
  constexpr int kSlabs = kSlabsAtOnce;
  constexpr int kPartQuads = kQuads / Type::kParts;
  Reg acc[N * kSlabs];
#pragma GCC unroll 8
  for (int i = 0; i < N * kSlabs; ++i) acc[i] = Vector::load(sums[i / kSlabs][i % kSlabs]);
  const auto at = [&](int i) { return static_cast<std::size_t>(i) * in.group_stride; };
  for (int group = 0; group < groups; ++group, in.advance()) {
    ahead.ask_some();
#pragma GCC unroll 2
    for (int part = 0; part < Type::kParts; ++part) {
      Products products[N * kSlabs];
#pragma GCC unroll 8
      for (int i = 0; i < N * kSlabs; ++i)
        products[i].start(start_of<Type>(in, at(i / kSlabs), part));
#pragma GCC unroll 8
      for (int j = 0; j < kPartQuads; ++j) {
        const int quad = part * kPartQuads + j;
        Word weights[kSlabs];
#pragma GCC unroll 8
        for (int slab = 0; slab < kSlabs; ++slab)
          weights[slab] = Words::load(slabs[slab].quads[group][quad]);
#pragma GCC unroll 8
        for (int i = 0; i < N * kSlabs; ++i)
          products[i].add(j, weights[i % kSlabs],
                          in.x + static_cast<std::size_t>(i / kSlabs) * in.stride + 4 * quad);
      }
#pragma GCC unroll 8
      for (int i = 0; i < N * kSlabs; ++i) {
        const Reg scale = Vector::mul(Vector::load(slabs[i % kSlabs].scales[group][part]),
                                      Vector::set(in.scales[at(i / kSlabs)]));
        acc[i] = Vector::fma(Words::to_float(products[i].sum()), scale, acc[i]);
      }
    }
    if constexpr (Type::kMinimum) {
#pragma GCC unroll 8
      for (int i = 0; i < N * kSlabs; ++i)
        acc[i] = Vector::subtract_product(Vector::load(slabs[i % kSlabs].minimums[group]),
                                          Vector::set(in.totals[at(i / kSlabs)]), acc[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N * kSlabs; ++i) Vector::store(sums[i / kSlabs][i % kSlabs], acc[i]);
#endif
}

using MultiplySlabs = void (*)(const Slab*, int groups, SlabInputs, AskedLines&, SlabSums*);
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
#if defined(__ARM_FEATURE_MATMUL_INT8)
      store_quad_pairs(slab, first + group, quads);
#else
      store_quads(slab, first + group, quads);
#endif
    }
  }
}

/// The rows in the slabs times some tokens, at most kTokensPerSlab. They come from a panel and, if
/// there are two, the next. `pass` says where, and `pass.part` which rows if it is a half of a
/// panel.
template <class Type>
void multiply_by_slabs(const PanelPass& pass, RowRange tokens, const Inputs& in,
                       const Outputs& out) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
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
  for (int first = 0; first < pass.groups; first += kSlabGroups) {
    const int left = pass.groups - first;
    const int groups = left < kSlabGroups ? left : kSlabGroups;
    for (int slab = 0; slab < kSlabsAtOnce; ++slab)
      unpack_units<Type>(at + static_cast<std::size_t>(slab) * bytes, pass.part, groups,
                         slabs[slab]);
    at += kSlabGroups / kLayout.unit_groups * kUnitBytes;
    for (int i = 0; i < count; i += kSlabTokens) {
      const int together = count - i < kSlabTokens ? count - i : kSlabTokens;
      kMultiplySlabs<Type>[together - 1](
          slabs, groups, {in, pass.groups * kGroup, tokens.first + i, first}, ahead, sums + i);
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
    int row = rows.first;
    for (; tokens.last - t > kPanelTokensMax && row + kTogether <= rows.last; row += kTogether) {
      for (int part = 0; part < kTogether / kSlabsRows; ++part) {
        const std::size_t ahead = part == 0 ? kTogether / kPanelRows * bytes : 0;
        multiply_by_slabs<Type>({panel_of(row), groups, part, row + part * kRows, 0, ahead}, tokens,
                                in, out);
      }
    }
    for (; row < rows.last; row += kPanelRows)
      multiply_tokens<Type>({panel_of(row), groups, 0, row, 0, 0}, tokens, in, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
