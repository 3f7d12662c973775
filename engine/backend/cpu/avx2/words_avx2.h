#pragma once

#include <immintrin.h>

#include "engine/backend/cpu/avx2/vector_avx2.h"

// 8 words of 32 bits, one of each of 8 matrix rows. Internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

struct Words {
  using Reg = __m256i;
#if defined(__AVXVNNI__)
  static constexpr bool kSignedBytes = false;  // vpdpbusd multiplies unsigned by signed
#else
  /// Eight-bit weights stay signed in a slab: as unsigned bytes their products would not fit 16 bits.
  static constexpr bool kSignedBytes = true;
#endif
  static constexpr int kTokensAtOnce = 4;  // 4 float sums + 4 to 8 integer sums of 16 registers
  static constexpr int kSlabsAtOnce = 2;

  /// `sum`, which is complete before what is added next. g++ 12 regroups sums of a whole group and
  /// spills what then waits: 4 tokens took 1.2 to 1.5 times as long (K types, an EPYC).
  static Reg in_order(Reg sum) {
    asm("" : "+x"(sum));
    return sum;
  }
  static Reg zero() { return _mm256_setzero_si256(); }
  static Reg set(unsigned word) { return _mm256_set1_epi32(static_cast<int>(word)); }
  static Reg broadcast(const std::int32_t* at) { return _mm256_set1_epi32(*at); }
  static Reg load(const unsigned char* at) {
    return _mm256_load_si256(reinterpret_cast<const Reg*>(at));
  }
  static Reg load_unaligned(const std::int8_t* at) {
    return _mm256_loadu_si256(reinterpret_cast<const Reg*>(at));
  }
  /// Signed bytes 0 and 2 of each word, 16 bits each.
  static Reg even_bytes(Reg a) { return _mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8); }
  /// The same of bytes 1 and 3.
  static Reg odd_bytes(Reg a) { return _mm256_srai_epi16(a, 8); }
  /// sum + the products of 16-bit numbers, two to a word.
  static Reg add_products(Reg sum, Reg a, Reg b) {
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(a, b)));
  }
  static void store(unsigned char* at, Reg words) {
    _mm256_store_si256(reinterpret_cast<Reg*>(at), words);
  }
  static Reg both(Reg a, Reg b) { return _mm256_and_si256(a, b); }
  static Reg either(Reg a, Reg b) { return _mm256_or_si256(a, b); }
  static Reg flip(Reg a, Reg b) { return _mm256_xor_si256(a, b); }
  static Reg add(Reg a, Reg b) { return _mm256_add_epi32(a, b); }
  static Reg right(Reg a, int bits) { return _mm256_srli_epi32(a, bits); }
  static Reg left(Reg a, int bits) { return _mm256_slli_epi32(a, bits); }
  static Reg right_signed(Reg a, int bits) { return _mm256_srai_epi32(a, bits); }
  static Vector::Reg to_float(Reg a) { return _mm256_cvtepi32_ps(a); }
  /// The low 16 bits of each word, which are an f16.
  static Vector::Reg half_to_float(Reg a) {
    const Reg low = _mm256_and_si256(a, _mm256_set1_epi32(0xFFFF));
    const Reg packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
    return _mm256_cvtph_ps(_mm256_castsi256_si128(packed));
  }

  /// The word at `at` in each row.
  static Reg gather(const unsigned char* at, std::size_t stride) {
    const auto word = [&](std::size_t row) {
      int value;
      __builtin_memcpy(&value, at + row * stride, 4);
      return value;
    };
    return _mm256_setr_epi32(word(0), word(1), word(2), word(3), word(4), word(5), word(6),
                             word(7));
  }
  /// out[j]: word j of the four at `at` in each row; a 4 x 4 transposition inside each 128-bit lane.
  static void gather4(const unsigned char* at, std::size_t stride, Reg* out) {
    const Reg a = every_fourth_row(at, stride);
    const Reg b = every_fourth_row(at + stride, stride);
    const Reg c = every_fourth_row(at + 2 * stride, stride);
    const Reg d = every_fourth_row(at + 3 * stride, stride);
    const Reg ab_low = _mm256_unpacklo_epi32(a, b);
    const Reg ab_high = _mm256_unpackhi_epi32(a, b);
    const Reg cd_low = _mm256_unpacklo_epi32(c, d);
    const Reg cd_high = _mm256_unpackhi_epi32(c, d);
    out[0] = _mm256_unpacklo_epi64(ab_low, cd_low);
    out[1] = _mm256_unpackhi_epi64(ab_low, cd_low);
    out[2] = _mm256_unpacklo_epi64(ab_high, cd_high);
    out[3] = _mm256_unpackhi_epi64(ab_high, cd_high);
  }
  /// Adds `value` to byte i of each word where bit 4 * quad + i of `bits` is set; it is 0 there.
  static Reg add_where(Reg bytes, Reg bits, int quad, int value) {
    const Reg order = _mm256_add_epi32(_mm256_setr_epi32(0, 0x04040404, 0x08080808, 0x0C0C0C0C, 0,
                                                         0x04040404, 0x08080808, 0x0C0C0C0C),
                                       set(0x01010101U * (static_cast<unsigned>(quad) / 2U)));
    const Reg wanted = set(quad % 2 == 0 ? 0x08040201U : 0x80402010U);
    const Reg found = _mm256_and_si256(_mm256_shuffle_epi8(bits, order), wanted);
    const Reg is_set = _mm256_cmpeq_epi8(found, wanted);
    return _mm256_or_si256(bytes,
                           _mm256_and_si256(is_set, _mm256_set1_epi8(static_cast<char>(value))));
  }

  /// Sums of products of bytes up to kTop (unsigned, but see kSignedBytes) with signed bytes, four
  /// to a word.
  template <int kTop>
  class Products {
   public:
    void start(Reg sum) { sum_ = sum; }
    /// Adds the products of the `index`th quad since the start.
    void add(int index, Reg weights, const std::int8_t* x) {
      int quad;
      __builtin_memcpy(&quad, x, 4);
      add(index, weights, _mm256_set1_epi32(quad));
    }
    Reg sum() const { return sum_; }

   private:
#if defined(__AVXVNNI__)
    void add(int, Reg weights, Reg x) { sum_ = _mm256_dpbusd_avx_epi32(sum_, weights, x); }
#else
    /// vpmaddubsw adds pairs of products in 16 bits, saturating. x is never -128, so this many sums
    /// of pairs fit.
    static constexpr int kPairs = kTop * 2 * 127;
    static constexpr int kFit = kPairs <= 32767 / 8   ? 8
                                : kPairs <= 32767 / 4 ? 4
                                : kPairs <= 32767 / 2 ? 2
                                                      : 1;
    void add(int index, Reg weights, Reg x) {
      if constexpr (kTop ==
                    255) {  // signed: |w| * (x with w's sign), at most 2 * 128 * 127 = 32512
        pairs_ = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
      } else {
        const Reg pairs = _mm256_maddubs_epi16(weights, x);
        pairs_ = index % kFit == 0 ? pairs : _mm256_add_epi16(pairs_, pairs);
      }
      pairs_ = in_order(pairs_);
      if (index % kFit == kFit - 1)
        sum_ = _mm256_add_epi32(sum_, _mm256_madd_epi16(pairs_, _mm256_set1_epi16(1)));
    }
    Reg pairs_;
#endif
    Reg sum_;
  };

 private:
  /// 16 bytes each of rows 0 and 4.
  static Reg every_fourth_row(const unsigned char* at, std::size_t stride) {
    const auto row = [&](std::size_t i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i * stride));
    };
    return _mm256_inserti128_si256(_mm256_castsi128_si256(row(0)), row(4), 1);
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
