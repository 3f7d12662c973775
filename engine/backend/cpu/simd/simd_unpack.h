#pragma once

// Blocks of quantized weights (weight_blocks.h) to slabs, over the Words of the file that includes
// this. It takes as many rows at a time as a register has words, one row a word.
//
//   quads   [group][8][R rows][4]: byte i of quad j is weight 4j + i of the group. Unsigned:
//           (quant + kCenter) << kShift; eight bits stay signed where Words::kSignedBytes
//   scales  [group][2][R rows]: of weights 0-15 and 16-31 of the group, where kParts is 2; else one
//   minimums [group][R rows], where kMinimum
#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kRows = Vector::kLanes;
constexpr int kQuads = kGroup / 4;
constexpr int kSlabGroups = 32;

struct alignas(64) Slab {
  unsigned char quads[kSlabGroups][kQuads][4 * kRows];
  float scales[kSlabGroups][2][kRows];
  float minimums[kSlabGroups][kRows];
};

using Word = Words::Reg;
constexpr unsigned kLowNibbles = 0x0F0F0F0FU;

/// 128 / center as a shift.
constexpr int shift_to_128(int center) {
  return center == 8 ? 4 : center == 16 ? 3 : center == 32 ? 2 : 0;
}

/// The facts of a type that unpacking and multiplying need.
template <int kBytesOfBlock, int kGroupsOfBlock, int kTopOf, int kCenterOf, bool kMinimumOf,
          int kPartsOf>
struct Layout {
  static constexpr int kBytes = kBytesOfBlock;
  static constexpr int kGroups = kGroupsOfBlock;  ///< of a block
  static constexpr int kTop = kTopOf;             ///< the largest byte of a quad, not shifted
  static constexpr int kCenter = kCenterOf;       ///< what quads have more than quants, 0 for none
  /// If sums of products do not overflow, quads are shifted so that every center is 128.
  /// Inputs::offsets then takes it out of a sum as it is.
  static constexpr int kShift = Words::kSignedBytes ? 0 : shift_to_128(kCenterOf);
  static constexpr int kOffsetShift = shift_to_128(kCenterOf) - kShift;  ///< of offsets, else
  static constexpr bool kMinimum = kMinimumOf;
  static constexpr int kParts = kPartsOf;  ///< scales of a group
};

/// `scale` is that of quads that are not shifted. A Target has scales and minimums as a Slab has.
template <int kShift, class Target>
inline void store_scale(Target& target, int group, int part, Vector::Reg scale) {
  if constexpr (kShift > 0) scale = Vector::mul(scale, Vector::set(1.0F / (1 << kShift)));
  Vector::store(target.scales[group][part], scale);
}

/// Words 0-3 of 16 bytes of each row to quads 0-3 (low nibbles) and 4-7 (high nibbles), shifted.
template <int kShift>
inline void split_nibbles(const Word* bytes, Word* quads) {
  const Word mask = Words::set(kLowNibbles << kShift);
  for (int j = 0; j < 4; ++j) {
    quads[j] = Words::both(Words::left(bytes[j], kShift), mask);
    quads[4 + j] = Words::both(Words::right(bytes[j], 4 - kShift), mask);
  }
}

/// The same from the place of these bytes in the file.
template <int kShift>
inline void unpack_nibbles(const unsigned char* at, std::size_t stride, Word* quads) {
  Word bytes[4];
  Words::gather4(at, stride, bytes);
  split_nibbles<kShift>(bytes, quads);
}

inline void store_quads(Slab& slab, int group, const Word* quads) {
  for (int j = 0; j < kQuads; ++j) Words::store(slab.quads[group][j], quads[j]);
}

struct Q8_0 : Layout<kQ8_0Bytes, 1, 255, Words::kSignedBytes ? 0 : 128, false, 1> {
  static void unpack(const unsigned char* at, std::size_t stride, Slab& slab, int group) {
    Word quads[kQuads];
    Words::gather4(at + 2, stride, quads);
    Words::gather4(at + 18, stride, quads + 4);
    for (int j = 0; j < kQuads && !Words::kSignedBytes; ++j)
      quads[j] = Words::flip(quads[j], Words::set(0x80808080U));  // + 128
    store_quads(slab, group, quads);
    store_scale<0>(slab, group, 0, Words::half_to_float(Words::gather(at, stride)));
  }
};

/// A scale, and the value that the file adds, if any; a minimum is subtracted.
template <class Type, class Target>
inline void store_scale_and_minimum(Target& target, int group, Word head) {
  store_scale<Type::kShift>(target, group, 0, Words::half_to_float(head));
  if constexpr (Type::kMinimum) {
    const Vector::Reg added = Words::half_to_float(Words::right(head, 16));
    Vector::store(target.minimums[group], Vector::sub(Vector::zero(), added));
  }
}

/// Q4_0, Q4_1, Q5_0 and Q5_1: a scale, perhaps a minimum, perhaps 32 bits, 16 bytes of nibbles.
template <int kBytesOfBlock, int kTopOf, int kCenterOf>
struct Nibbles : Layout<kBytesOfBlock, 1, kTopOf, kCenterOf, kCenterOf == 0, 1> {
  static constexpr int kShift =
      Layout<kBytesOfBlock, 1, kTopOf, kCenterOf, kCenterOf == 0, 1>::kShift;
  static void unpack(const unsigned char* at, std::size_t stride, Slab& slab, int group) {
    Word quads[kQuads];
    unpack_nibbles<kShift>(at + kBytesOfBlock - 16, stride, quads);
    if constexpr (kTopOf == 31) {
      const Word bits = Words::gather(at + kBytesOfBlock - 20, stride);
      for (int j = 0; j < kQuads; ++j) quads[j] = Words::add_where(quads[j], bits, j, 16 << kShift);
    }
    store_quads(slab, group, quads);
    store_scale_and_minimum<Nibbles>(slab, group, Words::gather(at, stride));
  }
};
using Q4_0 = Nibbles<kQ4_0Bytes, 15, 8>;
using Q4_1 = Nibbles<kQ4_1Bytes, 15, 0>;
using Q5_0 = Nibbles<kQ5_0Bytes, 31, 16>;
using Q5_1 = Nibbles<kQ5_1Bytes, 31, 0>;

/// Scales and minimums of a superblock of Q4_K or Q5_K: its first 16 bytes, which are d and dmin,
/// then s of weight_blocks.h.
template <class Target>
inline void store_group_scales(const Word* head, Target& target, int group) {
  const Vector::Reg unit = Words::half_to_float(head[0]);
  const Vector::Reg minimum_unit = Words::half_to_float(Words::right(head[0], 16));
  const Word six = Words::set(0x3F3F3F3FU);
  const Word low = Words::set(kLowNibbles);
  const Word top = Words::set(0x30303030U);
  const auto upper = [&](Word nibbles, Word bits) {
    return Words::either(Words::both(nibbles, low), Words::both(Words::right(bits, 2), top));
  };
  // [0] groups 0-3, [1] groups 4-7, a byte each
  const Word scales[2] = {Words::both(head[1], six), upper(head[3], head[1])};
  const Word minimums[2] = {Words::both(head[2], six), upper(Words::right(head[3], 4), head[2])};
  const Word byte = Words::set(0xFFU);
#pragma GCC unroll 8
  for (int g = 0; g < 8; ++g) {
    const int shift = g % 4 * 8;
    const Word scale = Words::both(Words::right(scales[g / 4], shift), byte);
    const Word minimum = Words::both(Words::right(minimums[g / 4], shift), byte);
    store_scale<0>(target, group + g, 0, Vector::mul(Words::to_float(scale), unit));
    Vector::store(target.minimums[group + g], Vector::mul(Words::to_float(minimum), minimum_unit));
  }
}

inline void unpack_group_scales(const unsigned char* at, std::size_t stride, Slab& slab,
                                int group) {
  Word head[4];
  Words::gather4(at, stride, head);
  store_group_scales(head, slab, group);
}

struct Q4_K : Layout<kQ4_KBytes, 8, 15, 0, true, 1> {
  static void unpack(const unsigned char* at, std::size_t stride, Slab& slab, int group) {
    unpack_group_scales(at, stride, slab, group);
    for (int half = 0; half < 8; ++half) {  // 16 weights of each of two groups
      Word quads[kQuads];
      unpack_nibbles<0>(at + 16 + half * 16, stride, quads);
      unsigned char(*lower)[4 * kRows] = slab.quads[group + half / 2 * 2] + half % 2 * 4;
      unsigned char(*upper)[4 * kRows] = slab.quads[group + half / 2 * 2 + 1] + half % 2 * 4;
      for (int j = 0; j < 4; ++j) {
        Words::store(lower[j], quads[j]);
        Words::store(upper[j], quads[4 + j]);
      }
    }
  }
};

struct Q5_K : Layout<kQ5_KBytes, 8, 31, 0, true, 1> {
  static void unpack(const unsigned char* at, std::size_t stride, Slab& slab, int group) {
    unpack_group_scales(at, stride, slab, group);
    Word bits[kQuads];  // bit g of byte i: weight i of group g
    Words::gather4(at + 16, stride, bits);
    Words::gather4(at + 32, stride, bits + 4);
    for (int half = 0; half < 8; ++half) {
      const int g = half / 2 * 2;
      Word quads[kQuads];
      unpack_nibbles<0>(at + 48 + half * 16, stride, quads);
      for (int j = 0; j < 4; ++j) {
        const Word high = bits[half % 2 * 4 + j];
        Words::store(slab.quads[group + g][half % 2 * 4 + j], with_bit(quads[j], high, g));
        Words::store(slab.quads[group + g + 1][half % 2 * 4 + j],
                     with_bit(quads[4 + j], high, g + 1));
      }
    }
  }

 private:
  /// quad + 16 * bit `bit` of each byte of `high`.
  static Word with_bit(Word quad, Word high, int bit) {
    const Word moved = bit < 4 ? Words::left(high, 4 - bit) : Words::right(high, bit - 4);
    return Words::either(quad, Words::both(moved, Words::set(0x10101010U)));
  }
};

struct Q6_K : Layout<kQ6_KBytes, 8, 63, 32, false, 2> {
  /// Sixteen scales, a byte each, times `unit`.
  template <class Target>
  static void store_scales(const Word* scales, Vector::Reg unit, Target& target, int group) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      const Word scale = Words::right_signed(Words::left(scales[i / 4], 24 - i % 4 * 8), 24);
      store_scale<kShift>(target, group + i / 2, i % 2, Vector::mul(Words::to_float(scale), unit));
    }
  }
  static void unpack(const unsigned char* at, std::size_t stride, Slab& slab, int group) {
    unpack_scales(at, stride, slab, group);
    for (int half = 0; half < 2; ++half) {    // of the block: four groups each
      for (int part = 0; part < 2; ++part) {  // weights 0-15 and 16-31 of those groups
        Word bits[4];
        Words::gather4(at + 128 + half * 32 + part * 16, stride, bits);
        for (int pair = 0; pair < 2; ++pair) {  // groups 0 and 2, then 1 and 3
          Word quads[kQuads];
          unpack_nibbles<kShift>(at + half * 64 + pair * 32 + part * 16, stride, quads);
          const int g = group + half * 4 + pair;
          for (int j = 0; j < 4; ++j) {
            Words::store(slab.quads[g][part * 4 + j], with_bits(quads[j], bits[j], pair));
            Words::store(slab.quads[g + 2][part * 4 + j],
                         with_bits(quads[4 + j], bits[j], pair + 2));
          }
        }
      }
    }
  }

 private:
  /// quad + 16 * bits 2 * which and up of each byte of `high`, shifted.
  static Word with_bits(Word quad, Word high, int which) {
    const int left = 4 + kShift - 2 * which;
    const Word moved = left > 0 ? Words::left(high, left) : Words::right(high, -left);
    return Words::either(quad, Words::both(moved, Words::set(0x30303030U << kShift)));
  }
  static void unpack_scales(const unsigned char* at, std::size_t stride, Slab& slab, int group) {
    const Vector::Reg unit =
        Words::half_to_float(Words::right(Words::gather(at + 206, stride), 16));
    Word scales[4];
    Words::gather4(at + 192, stride, scales);
    store_scales(scales, unit, slab, group);
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
