#pragma once

#include <bit>
#include <cstdint>

namespace efimd::engine::cpu {

/// IEEE 754 binary16 to f32, exact (subnormals, infinities and NaN included).
inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t rest = half & 0x7FFFU;
  if (rest >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | ((rest & 0x3FFU) << 13U));
  // Subnormals: the float 0.5 + rest * 2^-24 minus 0.5 is the value, with no special loop.
  if (rest < 0x400U) {
    const float value = std::bit_cast<float>((126U << 23U) | rest) - 0.5F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
  return std::bit_cast<float>(sign | ((rest << 13U) + (112U << 23U)));
}

/// f32 to binary16, nearest even; overflow gives infinity, NaN stays NaN.
inline std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t rest = bits & 0x7FFFFFFFU;
  if (rest > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (rest >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (rest <
      0x38800000U) {  // below 2^-14: adding 0.5 leaves the subnormal's bits, rounded, at the bottom
    const float shifted = std::bit_cast<float>(rest) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) & 0x7FFU));
  }
  const std::uint32_t rounded = rest + 0xFFFU + ((rest >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - (112U << 23U)) >> 13U));
}

inline float bfloat_to_float(std::uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16U);
}

}  // namespace efimd::engine::cpu
