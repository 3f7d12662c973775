#pragma once

#include <immintrin.h>

#include <cstdint>

// 16 floats. Everything here has internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

struct Vector {
  using Reg = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 4;     // of a floating-point matmul
  static constexpr int kTileTokens = 4;   // 16 sums + 4 weights + 4 inputs of 32 registers
  static constexpr int kTileQueries = 8;  // of attention: 8 x 2 sums + 2 of K or V

  /// `value` in a register: g++ 12 puts what an inner loop uses often into memory.
  static Reg held(Reg value) {
    asm("" : "+v"(value));
    return value;
  }
  static Reg zero() { return _mm512_setzero_ps(); }
  static Reg set(float value) { return _mm512_set1_ps(value); }
  static Reg load(const float* at) { return _mm512_loadu_ps(at); }
  static void store(float* at, Reg value) { _mm512_storeu_ps(at, value); }
  static Reg load_half(const void* at) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
  }
  static Reg load_bfloat(const void* at) {
    return bfloat(_mm256_loadu_si256(static_cast<const __m256i*>(at)));
  }
  /// Signed bytes.
  static Reg load_bytes(const void* at) {
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(at))));
  }
  static void store_half(std::uint16_t* at, Reg value) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at),
                        _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  // The first `count` (1 .. 15) lanes; the others read as 0 and are not written.
  static Reg load_part(const void* at, int count) {
    return _mm512_maskz_loadu_ps(first(count), at);
  }
  static void store_part(float* at, Reg value, int count) {
    _mm512_mask_storeu_ps(at, first(count), value);
  }
  static Reg load_half_part(const void* at, int count) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(count), at));
  }
  static Reg load_bfloat_part(const void* at, int count) {
    return bfloat(_mm256_maskz_loadu_epi16(first(count), at));
  }
  static void store_half_part(std::uint16_t* at, Reg value, int count) {
    _mm256_mask_storeu_epi16(at, first(count),
                             _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  /// c - a * b
  static Reg subtract_product(Reg a, Reg b, Reg c) { return _mm512_fnmadd_ps(a, b, c); }
  /// The second operand where either is NaN.
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg round(Reg a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// 2^n for whole n in -126 .. 127.
  static Reg power_of_two(Reg n) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
  }
  static Reg absolute(Reg a) { return _mm512_abs_ps(a); }
  /// `a` in the first `count` (0 .. 16) lanes, `b` in the others.
  static Reg select_first(int count, Reg a, Reg b) {
    return _mm512_mask_blend_ps(first(count), b, a);
  }
  static float sum(Reg a) { return _mm512_reduce_add_ps(a); }
  static float maximum(Reg a) { return _mm512_reduce_max_ps(a); }

  /// Lane i: sum(of[i]), the same bits, of at most 8; the other lanes are of no use.
  template <int N>
  static Reg sums(const Reg* of) {
    return columns<N>(of, [](Reg a, Reg b) { return _mm512_add_ps(a, b); });
  }
  /// Lane i: maximum(of[i]).
  template <int N>
  static Reg maxima(const Reg* of) {
    return columns<N>(of, [](Reg a, Reg b) { return _mm512_max_ps(a, b); });
  }

 private:
  /// Joins the lanes of N registers at once, in the order in which sum() joins those of one: halves,
  /// then quarters, pairs, the two of a pair.
  template <int N, class Join>
  static Reg columns(const Reg* of, const Join& join) {
    const auto at = [&](int i) { return of[i < N ? i : 0]; };
    Reg halves[4];  // 8 lanes of i, 8 of i + 4
    for (int i = 0; i < 4; ++i)
      halves[i] = join(_mm512_shuffle_f32x4(at(i), at(i + 4), 0x44),
                       _mm512_shuffle_f32x4(at(i), at(i + 4), 0xEE));
    Reg quarters[2];  // 4 lanes of i, i + 4, i + 2, i + 6
    for (int i = 0; i < 2; ++i)
      quarters[i] = join(_mm512_shuffle_f32x4(halves[i], halves[i + 2], 0x88),
                         _mm512_shuffle_f32x4(halves[i], halves[i + 2], 0xDD));
    // 2 lanes of 0, 1, 4, 5, 2, 3, 6, 7; then one of each, twice.
    const Reg pairs = join(_mm512_shuffle_ps(quarters[0], quarters[1], 0x44),
                           _mm512_shuffle_ps(quarters[0], quarters[1], 0xEE));
    const Reg ones =
        join(_mm512_shuffle_ps(pairs, pairs, 0x88), _mm512_shuffle_ps(pairs, pairs, 0xDD));
    const __m512i order = _mm512_setr_epi32(0, 1, 8, 9, 4, 5, 12, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_permutexvar_ps(order, ones);
  }
  static __mmask16 first(int count) {
    return static_cast<__mmask16>((1U << static_cast<unsigned>(count)) - 1U);
  }
  static Reg bfloat(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
