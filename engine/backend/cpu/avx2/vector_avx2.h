#pragma once

#include <immintrin.h>

#include <cstdint>

// 8 floats. Everything here has internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

struct Vector {
  using Reg = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 4;     // of a floating-point matmul
  static constexpr int kTileTokens = 2;   // 8 sums + 4 weights + 2 inputs of 16 registers
  static constexpr int kTileQueries = 4;  // of attention: 4 x 2 sums + 2 of K or V

  /// `value` in a register: g++ 12 puts what an inner loop uses often into memory.
  static Reg held(Reg value) {
    asm("" : "+x"(value));
    return value;
  }
  static Reg zero() { return _mm256_setzero_ps(); }
  static Reg set(float value) { return _mm256_set1_ps(value); }
  static Reg load(const float* at) { return _mm256_loadu_ps(at); }
  static void store(float* at, Reg value) { _mm256_storeu_ps(at, value); }
  static Reg load_half(const void* at) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(at)));
  }
  static Reg load_bfloat(const void* at) {
    const __m128i bits = _mm_loadu_si128(static_cast<const __m128i*>(at));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  /// Signed bytes.
  static Reg load_bytes(const void* at) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(at))));
  }
  static void store_half(std::uint16_t* at, Reg value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }

  // The first `count` (1 .. 7) lanes; the others read as 0 and are not written. Through memory:
  // tails are rare.
  static Reg load_part(const void* at, int count) {
    return load_tail<float>(at, count, load_float);
  }
  static Reg load_half_part(const void* at, int count) {
    return load_tail<std::uint16_t>(at, count, load_half);
  }
  static Reg load_bfloat_part(const void* at, int count) {
    return load_tail<std::uint16_t>(at, count, load_bfloat);
  }
  static void store_part(float* at, Reg value, int count) {
    float whole[kLanes];
    store(whole, value);
    for (int i = 0; i < count; ++i) at[i] = whole[i];
  }
  static void store_half_part(std::uint16_t* at, Reg value, int count) {
    std::uint16_t whole[kLanes];
    store_half(whole, value);
    for (int i = 0; i < count; ++i) at[i] = whole[i];
  }

  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  /// c - a * b
  static Reg subtract_product(Reg a, Reg b, Reg c) { return _mm256_fnmadd_ps(a, b, c); }
  /// The second operand where either is NaN.
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg round(Reg a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// 2^n for whole n in -126 .. 127.
  static Reg power_of_two(Reg n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  static Reg absolute(Reg a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a); }
  /// `a` in the first `count` (0 .. 8) lanes, `b` in the others.
  static Reg select_first(int count, Reg a, Reg b) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i taken = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(taken));
  }
  static float sum(Reg a) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static float maximum(Reg a) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }

 private:
  static Reg load_float(const void* at) { return load(static_cast<const float*>(at)); }
  template <class T>
  static Reg load_tail(const void* at, int count, Reg (*load_whole)(const void*)) {
    T whole[kLanes] = {};
    __builtin_memcpy(whole, at, static_cast<unsigned>(count) * sizeof(T));
    return load_whole(whole);
  }
};

}  // namespace
}  // namespace efimd::engine::cpu
