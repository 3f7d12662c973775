#pragma once

// Slabs x some int8 inputs, with float sums in registers from group to group.
//
// Two slabs are multiplied together if there are registers enough, because a broadcast input then
// serves both. The arithmetic of an output element is the same as everywhere. Other instruction sets
// have the same three names in avx2/slab_product_avx2.h and neon/slab_product_i8mm.h.
#include "engine/backend/cpu/simd/slab_sums.h"

namespace efimd::engine::cpu {
namespace {

/// Groups that a slab holds.
template <class Type>
constexpr int kGroupsAtOnce = kSlabGroups;

/// Up to this many tokens, panels are multiplied as they are. At 16 tokens slabs are slower with
/// Q8_0 and Q4_K, and even with Q4_0. Steps of a file that is mostly Q5_0 take 1.08 times as long
/// without them (both cores of an EPYC, Zen 5).
template <class Type>
constexpr int kPanelTokensMax = 16;
template <>
constexpr int kPanelTokensMax<Q5_0> = 8;

/// Up to this many tokens two panels are multiplied together as they are, where one pass does not take
/// all tokens; 0: never. On an EPYC (Zen 5) whole steps of 16 tokens are 1.15 times as fast with Q8_0
/// and 1.10 with Q4_0, of 64 tokens 1.05 and 1.01. Of Q4_1 a product of 16 is 1.05 times. What has
/// upper bits or small scales to unpack is faster by slabs. A register must hold all rows of a panel.
template <class Type>
constexpr int kPairTokensMax = 0;
constexpr bool kPairs = kRows == kPanelRows;
template <>
constexpr int kPairTokensMax<Q8_0> = kPairs ? kTokensPerSlab : 0;
template <>
constexpr int kPairTokensMax<Q4_0> = kPairs ? kTokensPerSlab : 0;
template <>
constexpr int kPairTokensMax<Q4_1> = kPairs ? 16 : 0;

/// The quads of a group of 32 weights, to where the product reads them.
template <class Type>
inline void store_for_product(Slab& slab, int group, const Word* quads) {
  store_quads(slab, group, quads);
}

/// sums[i] += slabs * x[i] for N tokens.
template <class Type, int N>
void multiply_slabs(const Slab* slabs, int groups, const SlabInputs& inputs, AskedLines& ahead,
                    SlabSums* sums) {
  SlabInputs in = inputs;
  using Products = Words::Products<Type::kTop>;
  constexpr int kSlabs = kSlabsAtOnce;
  constexpr int kPartQuads = kQuads / Type::kParts;
  Vector::Reg acc[N * kSlabs];
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
        const Vector::Reg scale = Vector::mul(Vector::load(slabs[i % kSlabs].scales[group][part]),
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
}

}  // namespace
}  // namespace efimd::engine::cpu
