#pragma once

// Slabs x some int8 inputs with i8mm, as simd/slab_product.h otherwise. Its instruction multiplies
// two rows of eight weights with two tokens.
//
// A slab's quads 2j and 2j + 1 lie side by side here, row after row: eight weights of a row. Sums of
// two tokens are taken apart before their scales. So an output element has the bits that it has
// everywhere.
#include "engine/backend/cpu/neon/words_neon.h"
#include "engine/backend/cpu/simd/slab_sums.h"

namespace efimd::engine::cpu {
namespace {

/// Two panels are never multiplied together: there are too few registers.
template <class Type>
constexpr int kPairTokensMax = 0;

/// Up to this many tokens, panels are multiplied as they are; not measured.
template <class Type>
constexpr int kPanelTokensMax = 16;

template <class Type>
constexpr int kGroupsAtOnce = kSlabGroups;

template <class Type>
inline void store_for_product(Slab& slab, int group, const Word* quads) {
  for (int j = 0; j < kQuads; j += 2) {
    unsigned char* at = slab.quads[group][j];
    vst1q_u32(reinterpret_cast<std::uint32_t*>(at), vzip1q_u32(quads[j].low, quads[j + 1].low));
    vst1q_u32(reinterpret_cast<std::uint32_t*>(at + 16),
              vzip2q_u32(quads[j].low, quads[j + 1].low));
    vst1q_u32(reinterpret_cast<std::uint32_t*>(at + 32),
              vzip1q_u32(quads[j].high, quads[j + 1].high));
    vst1q_u32(reinterpret_cast<std::uint32_t*>(at + 48),
              vzip2q_u32(quads[j].high, quads[j + 1].high));
  }
}

/// Of a pair of tokens: [rows 0-1, 2-3, 4-5, 6-7], each row with both.
struct PairSums {
  int32x4_t rows[4];

  /// Token 0 or 1 of the pair, a word of each row.
  Word of(int token) const {
    const auto every_other = [&](int32x4_t a, int32x4_t b) {
      return vreinterpretq_u32_s32(token == 0 ? vuzp1q_s32(a, b) : vuzp2q_s32(a, b));
    };
    return {every_other(rows[0], rows[1]), every_other(rows[2], rows[3])};
  }
};

/// sums[i] += slab * x[i] for N tokens.
template <class Type, int N>
void multiply_slabs(const Slab* slabs, int groups, const SlabInputs& inputs, AskedLines& ahead,
                    SlabSums* sums) {
  static_assert(kSlabsAtOnce == 1);
  const Slab& slab = *slabs;
  SlabInputs in = inputs;
  constexpr int kPairs = (N + 1) / 2;  // the last one may hold the same token twice
  constexpr int kPartQuads = kQuads / Type::kParts;
  Vector::Reg acc[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) acc[i] = Vector::load(sums[i][0]);
  const auto at = [&](int i) { return static_cast<std::size_t>(i) * in.group_stride; };
  for (int group = 0; group < groups; ++group, in.advance()) {
    ahead.ask_some();
#pragma GCC unroll 2
    for (int part = 0; part < Type::kParts; ++part) {
      PairSums products[kPairs];
#pragma GCC unroll 8
      for (int p = 0; p < kPairs; ++p)
        for (int32x4_t& rows : products[p].rows) rows = vdupq_n_s32(0);
#pragma GCC unroll 4
      for (int j = part * kPartQuads; j < (part + 1) * kPartQuads; j += 2) {
        int8x16_t weights[4];
#pragma GCC unroll 4
        for (int r = 0; r < 4; ++r)
          __builtin_memcpy(&weights[r], slab.quads[group][j] + 16 * r, sizeof weights[r]);
#pragma GCC unroll 8
        for (int p = 0; p < kPairs; ++p) {
          const std::int8_t* x = in.x + static_cast<std::size_t>(2 * p) * in.stride + 4 * j;
          const int8x16_t both =
              vcombine_s8(vld1_s8(x), vld1_s8(2 * p + 1 < N ? x + in.stride : x));
#pragma GCC unroll 4
          for (int r = 0; r < 4; ++r)
            products[p].rows[r] = vmmlaq_s32(products[p].rows[r], weights[r], both);
        }
      }
      const Vector::Reg scale = Vector::load(slab.scales[group][part]);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        const Word sum = Words::add(products[i / 2].of(i % 2), start_of<Type>(in, at(i), part));
        acc[i] = Vector::fma(Words::to_float(sum),
                             Vector::mul(scale, Vector::set(in.scales[at(i)])), acc[i]);
      }
    }
    if constexpr (Type::kMinimum) {
      const Vector::Reg minimums = Vector::load(slab.minimums[group]);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i)
        acc[i] = Vector::subtract_product(minimums, Vector::set(in.totals[at(i)]), acc[i]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) Vector::store(sums[i][0], acc[i]);
}

}  // namespace
}  // namespace efimd::engine::cpu
