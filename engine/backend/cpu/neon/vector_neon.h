#pragma once

#include <arm_neon.h>

#include <cstdint>

// 8 floats, in two registers of NEON. Everything here has internal linkage: see kernels.h on why.
namespace efimd::engine::cpu {
namespace {

struct Vector {
  struct Reg {
    float32x4_t low, high;
  };
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 4;    // of a floating-point matmul
  static constexpr int kTileTokens = 2;  // 16 registers of sums + 4 of inputs + 2 of weights, of 32
  static constexpr int kTileQueries = 4;  // of attention: 16 of sums + 4 of K or V

  /// `value` in registers: g++ 12 puts what an inner loop uses often into memory.
  static Reg held(Reg value) {
    asm("" : "+w"(value.low), "+w"(value.high));
    return value;
  }
  static Reg zero() { return set(0); }
  static Reg set(float value) { return {vdupq_n_f32(value), vdupq_n_f32(value)}; }
  static Reg load(const float* at) { return {vld1q_f32(at), vld1q_f32(at + 4)}; }
  static void store(float* at, Reg value) {
    vst1q_f32(at, value.low);
    vst1q_f32(at + 4, value.high);
  }
  static Reg load_half(const void* at) {
    const float16x8_t halves = vreinterpretq_f16_u16(load_words(at));
    return {vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves)};
  }
  static Reg load_bfloat(const void* at) {
    const uint16x8_t bits = load_words(at);
    return {vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(bits), 16)),
            vreinterpretq_f32_u32(vshll_high_n_u16(bits, 16))};
  }
  /// Signed bytes.
  static Reg load_bytes(const void* at) {
    const int16x8_t words = vmovl_s8(vld1_s8(static_cast<const std::int8_t*>(at)));
    return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(words))), vcvtq_f32_s32(vmovl_high_s16(words))};
  }
  static void store_half(std::uint16_t* at, Reg value) {
    const float16x8_t halves = vcvt_high_f16_f32(vcvt_f16_f32(value.low), value.high);
    vst1q_u16(at, vreinterpretq_u16_f16(halves));
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

  static Reg add(Reg a, Reg b) { return {vaddq_f32(a.low, b.low), vaddq_f32(a.high, b.high)}; }
  static Reg sub(Reg a, Reg b) { return {vsubq_f32(a.low, b.low), vsubq_f32(a.high, b.high)}; }
  static Reg mul(Reg a, Reg b) { return {vmulq_f32(a.low, b.low), vmulq_f32(a.high, b.high)}; }
  static Reg div(Reg a, Reg b) { return {vdivq_f32(a.low, b.low), vdivq_f32(a.high, b.high)}; }
  static Reg fma(Reg a, Reg b, Reg c) {
    return {vfmaq_f32(c.low, a.low, b.low), vfmaq_f32(c.high, a.high, b.high)};
  }
  /// c - a * b
  static Reg subtract_product(Reg a, Reg b, Reg c) {
    return {vfmsq_f32(c.low, a.low, b.low), vfmsq_f32(c.high, a.high, b.high)};
  }
  /// NaN where either is NaN.
  static Reg max(Reg a, Reg b) { return {vmaxq_f32(a.low, b.low), vmaxq_f32(a.high, b.high)}; }
  static Reg min(Reg a, Reg b) { return {vminq_f32(a.low, b.low), vminq_f32(a.high, b.high)}; }
  static Reg round(Reg a) { return {vrndnq_f32(a.low), vrndnq_f32(a.high)}; }
  /// 2^n for whole n in -126 .. 127.
  static Reg power_of_two(Reg n) {
    const int32x4_t bias = vdupq_n_s32(127);
    return {vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n.low), bias), 23)),
            vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(vcvtnq_s32_f32(n.high), bias), 23))};
  }
  static Reg absolute(Reg a) { return {vabsq_f32(a.low), vabsq_f32(a.high)}; }
  /// `a` in the first `count` (0 .. 8) lanes, `b` in the others.
  static Reg select_first(int count, Reg a, Reg b) {
    const int32x4_t lane = {0, 1, 2, 3};
    const uint32x4_t low = vcltq_s32(lane, vdupq_n_s32(count));
    const uint32x4_t high = vcltq_s32(lane, vdupq_n_s32(count - 4));
    return {vbslq_f32(low, a.low, b.low), vbslq_f32(high, a.high, b.high)};
  }
  static float sum(Reg a) { return vaddvq_f32(vaddq_f32(a.low, a.high)); }
  static float maximum(Reg a) { return vmaxvq_f32(vmaxq_f32(a.low, a.high)); }

 private:
  static uint16x8_t load_words(const void* at) {
    uint16x8_t words;
    __builtin_memcpy(&words, at, sizeof words);
    return words;
  }
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
