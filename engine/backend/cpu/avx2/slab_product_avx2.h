#pragma once

// Slabs x some int8 inputs with the 16 registers of AVX2; as simd/slab_product.h otherwise.
//
// Two slabs, the halves of a panel, are multiplied with up to four tokens: a broadcast input serves
// both slabs, and a register of weights all tokens. Sums of integers fill the registers, so float
// sums stay in memory and are touched once a group.
//
// Eight-bit weights have 16 bits in a slab, and so do their inputs. A product then takes a
// multiplication and an addition for 16 weights; with bytes it takes three multiplications (vpsignb
// runs where they run) and an addition for 32. 64 tokens of Q8_0: 1.2 times as fast.
#include "engine/backend/cpu/avx2/words_avx2.h"
#include "engine/backend/cpu/simd/slab_sums.h"

namespace efimd::engine::cpu {
namespace {

static_assert(kSlabsAtOnce == 2);
/// The sums of a tile: [token][slab].
constexpr int kTileSums = 2;

template <class Type>
constexpr bool kWide = Type::kTop == 255 && Words::kSignedBytes;
/// Wide weights take two bytes of a slab for each byte.
constexpr int kWideGroups = kSlabGroups / 2;
template <class Type>
constexpr int kGroupsAtOnce = kWide<Type> ? kWideGroups : kSlabGroups;

/// Two panels are never multiplied together: there are too few registers.
template <class Type>
constexpr int kPairTokensMax = 0;

/// Up to this many tokens, panels are multiplied as they are. With AVX2 alone 8 and 16 tokens in
/// slabs are faster, on one core of an EPYC (Zen 3): Q4_0 1.24 and 1.29 times, Q4_K 1.06 and 1.17. Q5_0
/// 1.1 and 1.3, Q6_K 1.3 and 1.4. Of Q8_0 only 16 are, 1.07 times. AVX-VNNI was not measured.
template <class Type>
constexpr int kPanelTokensMax = !Words::kSignedBytes ? 16
                                : kWide<Type>        ? 12
                                                     : 6;

/// Half-quad 2j has bytes 0 and 2 of quad j, half-quad 2j + 1 bytes 1 and 3.
constexpr int kHalfQuads = 2 * kQuads;
inline const unsigned char* half_quads(const Slab& slab, int group) {
  return slab.quads[2 * group][0];
}
inline unsigned char* half_quads(Slab& slab, int group) { return slab.quads[2 * group][0]; }

template <class Type>
inline void store_for_product(Slab& slab, int group, const Word* quads) {
  if constexpr (kWide<Type>) {
    unsigned char* at = half_quads(slab, group);
    for (int j = 0; j < kQuads; ++j, at += 2 * 4 * kRows) {
      Words::store(at, Words::even_bytes(quads[j]));
      Words::store(at + 4 * kRows, Words::odd_bytes(quads[j]));
    }
  } else {
    store_quads(slab, group, quads);
  }
}

/// sums[i] += integer sums of a group's part * scales, and minus minimums after the last part.
template <class Type, int N>
inline void add_scaled(const Slab* slabs, int group, int part, const SlabInputs& in,
                       const Word* products, SlabSums* sums) {
#pragma GCC unroll 4
  for (int i = 0; i < N; ++i) {
    const std::size_t at = static_cast<std::size_t>(i) * in.group_stride;
    const Vector::Reg scale = Vector::set(in.scales[at]);
#pragma GCC unroll 2
    for (int slab = 0; slab < kTileSums; ++slab) {
      Vector::Reg sum =
          Vector::fma(Words::to_float(products[kTileSums * i + slab]),
                      Vector::mul(Vector::load(slabs[slab].scales[group][part]), scale),
                      Vector::load(sums[i][slab]));
      if constexpr (Type::kMinimum)
        sum = Vector::subtract_product(Vector::load(slabs[slab].minimums[group]),
                                       Vector::set(in.totals[at]), sum);
      Vector::store(sums[i][slab], sum);
    }
  }
}

template <class Type, int N>
inline void multiply_byte_slabs(const Slab* slabs, int groups, SlabInputs in, AskedLines& ahead,
                                SlabSums* sums) {
  using Products = Words::Products<Type::kTop>;
  constexpr int kPartQuads = kQuads / Type::kParts;
  for (int group = 0; group < groups; ++group, in.advance()) {
    ahead.ask_some();
#pragma GCC unroll 2
    for (int part = 0; part < Type::kParts; ++part) {
      Products products[kTileSums * N];
#pragma GCC unroll 8
      for (Products& each : products) each.start(Words::zero());
#pragma GCC unroll 8
      for (int j = 0; j < kPartQuads; ++j) {
        const int quad = part * kPartQuads + j;
        const Word first = Words::load(slabs[0].quads[group][quad]);
        const Word second = Words::load(slabs[1].quads[group][quad]);
#pragma GCC unroll 4
        for (int i = 0; i < N; ++i) {
          const std::int8_t* x = in.x + static_cast<std::size_t>(i) * in.stride + 4 * quad;
          products[kTileSums * i].add(j, first, x);
          products[kTileSums * i + 1].add(j, second, x);
        }
      }
      Word whole[kTileSums * N];
#pragma GCC unroll 8
      for (int i = 0; i < kTileSums * N; ++i) {
        const std::size_t at = static_cast<std::size_t>(i / kTileSums) * in.group_stride;
        whole[i] = products[i].sum();
        // Adding it last leaves registers to the sums.
        if constexpr (Type::kCenter != 0)
          whole[i] = Words::add(whole[i], start_of<Type>(in, at, part));
      }
      add_scaled<Type, N>(slabs, group, part, in, whole, sums);
    }
  }
}

/// Inputs of 16 bits: of each token and group what a quad has at a half-quad's bytes, [8] even, then
/// [8] odd.
using WideInputs = std::int32_t[kWideGroups][2][kQuads];

inline void widen(const std::int8_t* x, int groups, WideInputs& wide) {
  for (int group = 0; group < groups; ++group, x += kGroup) {
    const Word quads = Words::load_unaligned(x);
    Words::store(reinterpret_cast<unsigned char*>(wide[group][0]), Words::even_bytes(quads));
    Words::store(reinterpret_cast<unsigned char*>(wide[group][1]), Words::odd_bytes(quads));
  }
}

template <class Type, int N>
inline void multiply_wide_slabs(const Slab* slabs, int groups, SlabInputs in, AskedLines& ahead,
                                SlabSums* sums) {
  alignas(64) WideInputs x[N];
  for (int i = 0; i < N; ++i) widen(in.x + static_cast<std::size_t>(i) * in.stride, groups, x[i]);
  for (int group = 0; group < groups; ++group, in.advance()) {
    ahead.ask_some();
    Word products[kTileSums * N];
#pragma GCC unroll 8
    for (Word& each : products) each = Words::zero();
#pragma GCC unroll 16
    for (int j = 0; j < kHalfQuads; ++j) {
      const Word first = Words::load(half_quads(slabs[0], group) + 4 * kRows * j);
      const Word second = Words::load(half_quads(slabs[1], group) + 4 * kRows * j);
#pragma GCC unroll 4
      for (int i = 0; i < N; ++i) {
        const Word pair = Words::broadcast(&x[i][group][j % 2][j / 2]);
        Word* sum = products + kTileSums * i;
        sum[0] = Words::add_products(sum[0], first, pair);
        sum[1] = Words::add_products(sum[1], second, pair);
      }
    }
    add_scaled<Type, N>(slabs, group, 0, in, products, sums);
  }
}

/// sums[i] += slabs * x[i] for N tokens.
template <class Type, int N>
void multiply_slabs(const Slab* slabs, int groups, const SlabInputs& in, AskedLines& ahead,
                    SlabSums* sums) {
  static_assert(!Type::kMinimum || Type::kParts == 1);
  if constexpr (kWide<Type>)
    multiply_wide_slabs<Type, N>(slabs, groups, in, ahead, sums);
  else
    multiply_byte_slabs<Type, N>(slabs, groups, in, ahead, sums);
}

}  // namespace
}  // namespace efimd::engine::cpu
