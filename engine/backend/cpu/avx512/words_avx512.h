#pragma once

#include <immintrin.h>

#include "engine/backend/cpu/avx512/vector_avx512.h"

// 16 words of 32 bits, one of each of 16 matrix rows. Internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

struct Words {
  using Reg = __m512i;
  /// Bytes of weights in a slab are unsigned: vpdpbusd multiplies unsigned by signed.
  static constexpr bool kSignedBytes = false;
  static constexpr int kTokensAtOnce = 8;  // 8 float sums + 8 integer sums of 32 registers
  static constexpr int kSlabsAtOnce = 2;   // the same registers with half as many tokens

  static Reg zero() { return _mm512_setzero_si512(); }
  static Reg set(unsigned word) { return _mm512_set1_epi32(static_cast<int>(word)); }
  static Reg broadcast(const std::int32_t* at) { return _mm512_set1_epi32(*at); }
  static Reg load(const unsigned char* at) { return _mm512_load_si512(at); }
  static void store(unsigned char* at, Reg words) { _mm512_store_si512(at, words); }
  static Reg both(Reg a, Reg b) { return _mm512_and_si512(a, b); }
  static Reg either(Reg a, Reg b) { return _mm512_or_si512(a, b); }
  static Reg flip(Reg a, Reg b) { return _mm512_xor_si512(a, b); }
  static Reg add(Reg a, Reg b) { return _mm512_add_epi32(a, b); }
  static Reg right(Reg a, int bits) { return _mm512_srli_epi32(a, static_cast<unsigned>(bits)); }
  static Reg left(Reg a, int bits) { return _mm512_slli_epi32(a, static_cast<unsigned>(bits)); }
  static Reg right_signed(Reg a, int bits) {
    return _mm512_srai_epi32(a, static_cast<unsigned>(bits));
  }
  static Vector::Reg to_float(Reg a) { return _mm512_cvtepi32_ps(a); }
  /// The low 16 bits of each word, which are an f16.
  static Vector::Reg half_to_float(Reg a) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)); }

  /// The word at `at` in each row.
  static Reg gather(const unsigned char* at, std::size_t stride) {
    const auto word = [&](std::size_t row) {
      int value;
      __builtin_memcpy(&value, at + row * stride, 4);
      return value;
    };
    return _mm512_setr_epi32(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7),
                             word(8), word(9), word(10), word(11), word(12), word(13), word(14),
                             word(15));
  }
  /// out[j]: word j of the four at `at` in each row; a 4 x 4 transposition inside each 128-bit lane.
  static void gather4(const unsigned char* at, std::size_t stride, Reg* out) {
    const Reg a = every_fourth_row(at, stride);
    const Reg b = every_fourth_row(at + stride, stride);
    const Reg c = every_fourth_row(at + 2 * stride, stride);
    const Reg d = every_fourth_row(at + 3 * stride, stride);
    const Reg ab_low = _mm512_unpacklo_epi32(a, b);
    const Reg ab_high = _mm512_unpackhi_epi32(a, b);
    const Reg cd_low = _mm512_unpacklo_epi32(c, d);
    const Reg cd_high = _mm512_unpackhi_epi32(c, d);
    out[0] = _mm512_unpacklo_epi64(ab_low, cd_low);
    out[1] = _mm512_unpackhi_epi64(ab_low, cd_low);
    out[2] = _mm512_unpacklo_epi64(ab_high, cd_high);
    out[3] = _mm512_unpackhi_epi64(ab_high, cd_high);
  }
  /// Adds `value` to byte i of each word where bit 4 * quad + i of `bits` is set; it is 0 there.
  static Reg add_where(Reg bytes, Reg bits, int quad, int value) {
    const Reg order = _mm512_add_epi32(_mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0),
                                       set(0x01010101U * (quad / 2U)));
    const Reg wanted = set(quad % 2 == 0 ? 0x08040201U : 0x80402010U);
    const __mmask64 is_set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(bits, order), wanted);
    return _mm512_mask_add_epi8(bytes, is_set, bytes, _mm512_set1_epi8(static_cast<char>(value)));
  }

  /// Sums of products of unsigned bytes up to kTop with signed bytes, four to a word.
  template <int kTop>
  class Products {
   public:
    void start(Reg sum) { sum_ = sum; }
    /// Adds the products of the `index`th quad since the start.
    void add(int, Reg weights, const std::int8_t* x) {
      int quad;
      __builtin_memcpy(&quad, x, 4);
      sum_ = _mm512_dpbusd_epi32(sum_, weights, _mm512_set1_epi32(quad));
    }
    Reg sum() const { return sum_; }

   private:
    Reg sum_;
  };

 private:
  /// 16 bytes each of rows 0, 4, 8, 12.
  static Reg every_fourth_row(const unsigned char* at, std::size_t stride) {
    const auto row = [&](std::size_t i) {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i * stride));
    };
    Reg rows = _mm512_castsi128_si512(row(0));
    rows = _mm512_inserti32x4(rows, row(4), 1);
    rows = _mm512_inserti32x4(rows, row(8), 2);
    return _mm512_inserti32x4(rows, row(12), 3);
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
