#pragma once

#include <arm_neon.h>

#include "engine/backend/cpu/neon/vector_neon.h"

// 8 words of 32 bits, one of each of 8 matrix rows. Internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

struct Words {
  struct Reg {
    uint32x4_t low, high;
  };
  /// Both factors of a product are signed.
  static constexpr bool kSignedBytes = true;
  static constexpr int kTokensAtOnce =
      4;  // 8 registers of float sums, 8 of integer sums, 16 of weights
  static constexpr int kSlabsAtOnce = 1;

  static Reg zero() { return set(0); }
  static Reg set(unsigned word) { return {vdupq_n_u32(word), vdupq_n_u32(word)}; }
  static Reg broadcast(const std::int32_t* at) { return set(static_cast<unsigned>(*at)); }
  static Reg load(const unsigned char* at) { return {load4(at), load4(at + 16)}; }
  static void store(unsigned char* at, Reg words) { __builtin_memcpy(at, &words, sizeof words); }
  static Reg both(Reg a, Reg b) { return {a.low & b.low, a.high & b.high}; }
  static Reg either(Reg a, Reg b) { return {a.low | b.low, a.high | b.high}; }
  static Reg flip(Reg a, Reg b) { return {a.low ^ b.low, a.high ^ b.high}; }
  static Reg add(Reg a, Reg b) { return {a.low + b.low, a.high + b.high}; }
  static Reg right(Reg a, int bits) {
    const auto by = static_cast<unsigned>(bits);
    return {a.low >> by, a.high >> by};
  }
  static Reg left(Reg a, int bits) {
    const auto by = static_cast<unsigned>(bits);
    return {a.low << by, a.high << by};
  }
  static Reg right_signed(Reg a, int bits) {
    return {vreinterpretq_u32_s32(vreinterpretq_s32_u32(a.low) >> bits),
            vreinterpretq_u32_s32(vreinterpretq_s32_u32(a.high) >> bits)};
  }
  static Vector::Reg to_float(Reg a) {
    return {vcvtq_f32_s32(vreinterpretq_s32_u32(a.low)),
            vcvtq_f32_s32(vreinterpretq_s32_u32(a.high))};
  }
  /// The low 16 bits of each word, which are an f16.
  static Vector::Reg half_to_float(Reg a) {
    return {vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(a.low))),
            vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(a.high)))};
  }

  /// The word at `at` in each row.
  static Reg gather(const unsigned char* at, std::size_t stride) {
    std::uint32_t words[8];
    for (std::size_t row = 0; row < 8; ++row) __builtin_memcpy(words + row, at + row * stride, 4);
    return {vld1q_u32(words), vld1q_u32(words + 4)};
  }
  /// out[j]: word j of the four at `at` in each row; two transpositions of 4 x 4.
  static void gather4(const unsigned char* at, std::size_t stride, Reg* out) {
    uint32x4_t low[4];
    uint32x4_t high[4];
    transpose(at, stride, low);
    transpose(at + 4 * stride, stride, high);
    for (int j = 0; j < 4; ++j) out[j] = {low[j], high[j]};
  }
  /// Adds `value` to byte i of each word where bit 4 * quad + i of `bits` is set; it is 0 there.
  static Reg add_where(Reg bytes, Reg bits, int quad, int value) {
    const Reg wanted = set(quad % 2 == 0 ? 0x08040201U : 0x80402010U);
    return {added4(bytes.low, bits.low, wanted.low, quad, value),
            added4(bytes.high, bits.high, wanted.high, quad, value)};
  }

  /// Sums of products of bytes up to kTop (Q8_0: signed) with signed bytes, four to a word.
  template <int kTop>
  class Products {
   public:
#if defined(__ARM_FEATURE_DOTPROD)
    void start(Reg sum) { sum_ = sum; }
    /// Adds the products of the `index`th quad since the start.
    void add(int, Reg weights, const std::int8_t* x) {
      const int8x16_t four = broadcast_quad(x);
      sum_.low = dot(sum_.low, weights.low, four);
      sum_.high = dot(sum_.high, weights.high, four);
    }
    Reg sum() const { return sum_; }

   private:
    static uint32x4_t dot(uint32x4_t sum, uint32x4_t weights, int8x16_t x) {
      return vreinterpretq_u32_s32(
          vdotq_s32(vreinterpretq_s32_u32(sum), vreinterpretq_s8_u32(weights), x));
    }
#else
    void start(Reg sum) {
      sum_ = sum;
      for (int32x4_t& pairs : pairs_) pairs = vdupq_n_s32(0);
    }
    void add(int index, Reg weights, const std::int8_t* x) {
      const int8x16_t four = broadcast_quad(x);
      add4(index, 0, vreinterpretq_s8_u32(weights.low), four);
      add4(index, 2, vreinterpretq_s8_u32(weights.high), four);
    }
    Reg sum() const {
      return {sum_.low + vreinterpretq_u32_s32(vpaddq_s32(pairs_[0], pairs_[1])),
              sum_.high + vreinterpretq_u32_s32(vpaddq_s32(pairs_[2], pairs_[3]))};
    }

   private:
    /// Products that are added in 16 bits; x is never -128. Powers of two, which end with a group.
    static constexpr int kLargest = (kTop == 255 ? 128 : kTop) * 127;
    static constexpr int kFit = kLargest <= 32767 / 8   ? 8
                                : kLargest <= 32767 / 4 ? 4
                                : kLargest <= 32767 / 2 ? 2
                                                        : 1;
    void add4(int index, int at, int8x16_t weights, int8x16_t x) {
      if (index % kFit == 0) {
        products_[at] = vmull_s8(vget_low_s8(weights), vget_low_s8(x));
        products_[at + 1] = vmull_high_s8(weights, x);
      } else {
        products_[at] = vmlal_s8(products_[at], vget_low_s8(weights), vget_low_s8(x));
        products_[at + 1] = vmlal_high_s8(products_[at + 1], weights, x);
      }
      if (index % kFit < kFit - 1) return;
      pairs_[at] = vpadalq_s16(pairs_[at], products_[at]);
      pairs_[at + 1] = vpadalq_s16(pairs_[at + 1], products_[at + 1]);
    }
    int16x8_t products_[4];  ///< of rows 0-1, 2-3, 4-5, 6-7
    int32x4_t pairs_[4];     ///< two sums of each row
#endif
    static int8x16_t broadcast_quad(const std::int8_t* x) {
      std::int32_t quad;
      __builtin_memcpy(&quad, x, 4);
      return vreinterpretq_s8_s32(vdupq_n_s32(quad));
    }
    Reg sum_;
  };

 private:
  static uint32x4_t load4(const unsigned char* at) {
    uint32x4_t words;
    __builtin_memcpy(&words, at, sizeof words);
    return words;
  }
  static void transpose(const unsigned char* at, std::size_t stride, uint32x4_t* out) {
    const uint32x4_t a = load4(at);
    const uint32x4_t b = load4(at + stride);
    const uint32x4_t c = load4(at + 2 * stride);
    const uint32x4_t d = load4(at + 3 * stride);
    const uint64x2_t ab_even = vreinterpretq_u64_u32(vtrn1q_u32(a, b));
    const uint64x2_t ab_odd = vreinterpretq_u64_u32(vtrn2q_u32(a, b));
    const uint64x2_t cd_even = vreinterpretq_u64_u32(vtrn1q_u32(c, d));
    const uint64x2_t cd_odd = vreinterpretq_u64_u32(vtrn2q_u32(c, d));
    out[0] = vreinterpretq_u32_u64(vtrn1q_u64(ab_even, cd_even));
    out[1] = vreinterpretq_u32_u64(vtrn1q_u64(ab_odd, cd_odd));
    out[2] = vreinterpretq_u32_u64(vtrn2q_u64(ab_even, cd_even));
    out[3] = vreinterpretq_u32_u64(vtrn2q_u64(ab_odd, cd_odd));
  }
  static uint32x4_t added4(uint32x4_t bytes, uint32x4_t bits, uint32x4_t wanted, int quad,
                           int value) {
    // Byte quad / 2 of a word to all four.
    const uint32x4_t first = {0, 0x04040404U, 0x08080808U, 0x0C0C0C0CU};
    const uint8x16_t order =
        vreinterpretq_u8_u32(first + 0x01010101U * (static_cast<unsigned>(quad) / 2U));
    const uint8x16_t found = vqtbl1q_u8(vreinterpretq_u8_u32(bits), order);
    const uint8x16_t is_set = vtstq_u8(found, vreinterpretq_u8_u32(wanted));
    const uint8x16_t added = vandq_u8(is_set, vdupq_n_u8(static_cast<std::uint8_t>(value)));
    return bytes | vreinterpretq_u32_u8(added);
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
