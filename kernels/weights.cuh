#pragma once

#include "kernels/device.cuh"

// Packed weights (engine/backend/gpu/packed_weights.h) of a type that is known when the kernel is compiled. `row` is a
// row's first word, at a multiple of 16 bytes.
namespace efimd::kernels {

template <Packed kType>
struct Weights {
  static constexpr bool kQuantized = kType >= Packed::kQ8_0;
  static constexpr bool kHigh1 =
      kType == Packed::kQ5_0 || kType == Packed::kQ5_1 || kType == Packed::kQ5_K;
  static constexpr bool kHalfScale =
      kType == Packed::kQ8_0 || kType == Packed::kQ4_0 || kType == Packed::kQ5_0;
  static constexpr u32 kCenter = kType == Packed::kQ4_0   ? 8
                                 : kType == Packed::kQ5_0 ? 16
                                 : kType == Packed::kQ6_K ? 32
                                                          : 0;
  /// Whether the halves of a group have scales of their own.
  static constexpr bool kHalves = kType == Packed::kQ6_K;
  static constexpr bool kMinimum = kType == Packed::kQ4_1 || kType == Packed::kQ5_1 ||
                                   kType == Packed::kQ4_K || kType == Packed::kQ5_K;
  /// Words of a group.
  static constexpr u32 kLowWords = kType == Packed::kQ8_0 ? 8 : 4;
  static constexpr u32 kHighWords = kHigh1 ? 1 : kHalves ? 2 : 0;

  /// Quad i of a group, weights 4i .. 4i + 3, as signed bytes, from the words of its planes that hold it.
  static __device__ __forceinline__ u32 quad(u32 low, u32 high, u32 i) {
    if constexpr (kType == Packed::kQ8_0) return low;
    u32 quad = low >> (4 * (i % 2)) & 0x0F0F0F0FU;
    if constexpr (kHigh1) quad |= (high >> i & 0x01010101U) << 4U;
    if constexpr (kType == Packed::kQ6_K) quad |= (high >> (2 * (i % 4)) & 0x03030303U) << 4U;
    // Four subtractions at once: bit 7 of each byte keeps the borrow in.
    if constexpr (kCenter != 0) quad = ((quad | 0x80808080U) - kCenter * 0x01010101U) ^ 0x80808080U;
    return quad;
  }

  /// A group's words as they lie in the row: until they are unpacked nobody waits for them.
  struct Words {
    u32 low[kLowWords];
    u32 high[kHighWords == 0 ? 1 : kHighWords];
    u32 scale, super;
  };
  static __device__ __forceinline__ Words words(const u32* row, const RowLayout& layout,
                                                u32 group) {
    Words words;
#pragma unroll
    for (u32 i = 0; i < kLowWords; i += 4) {
      const uint4 four = *reinterpret_cast<const uint4*>(row + group * kLowWords + i);
      words.low[i] = four.x, words.low[i + 1] = four.y;
      words.low[i + 2] = four.z, words.low[i + 3] = four.w;
    }
    if constexpr (kHighWords >= 1) words.high[0] = row[layout.high_at + group * kHighWords];
    if constexpr (kHighWords == 2) words.high[1] = row[layout.high_at + group * kHighWords + 1];
    words.scale = scale_word(row, layout, group);
    words.super = super_word(row, layout, group);
    return words;
  }

  /// The 32 quants of a group as signed bytes, four a word.
  static __device__ __forceinline__ void unpack(const Words& words, u32 (&quants)[8]) {
#pragma unroll
    for (u32 i = 0; i < 8; ++i)
      quants[i] = quad(words.low[i * kLowWords / 8],
                       kHighWords == 0 ? 0 : words.high[i * kHighWords / 8], i);
  }
  static __device__ __forceinline__ void load_group(const u32* row, const RowLayout& layout,
                                                    u32 group, u32 (&quants)[8]) {
    unpack(words(row, layout, group), quants);
  }

  static constexpr bool kWordOfScales = kType == Packed::kQ4_1 || kType == Packed::kQ5_1;
  static __device__ __forceinline__ u32 scale_word(const u32* row, const RowLayout& layout,
                                                   u32 group) {
    return row[layout.scale_at + (kWordOfScales ? group : group / 2)];
  }
  static __device__ __forceinline__ u32 super_word(const u32* row, const RowLayout& layout,
                                                   u32 group) {
    return kWordOfScales || kHalfScale ? 0 : row[layout.super_at + group / 8];
  }

  /// A group's scales as they lie in the row.
  struct ScaleBits {
    u32 of_group, of_super;
  };
  static __device__ __forceinline__ ScaleBits scale_bits(u32 scale, u32 super, u32 group) {
    return {kWordOfScales ? scale : scale >> (16 * (group % 2)) & 0xFFFFU, super};
  }
  static __device__ __forceinline__ ScaleBits scale_bits(const Words& words, u32 group) {
    return scale_bits(words.scale, words.super, group);
  }
  static __device__ __forceinline__ ScaleBits scale_bits(const u32* row, const RowLayout& layout,
                                                         u32 group) {
    return scale_bits(scale_word(row, layout, group), super_word(row, layout, group), group);
  }

  struct Scales {
    float low, high;  ///< of the first and the last 16 weights
    float minimum;    ///< a weight is scale * quant - minimum
  };
  static __device__ __forceinline__ Scales scales(const ScaleBits& bits) {
    if constexpr (kWordOfScales) {
      const float2 both = both_halves(bits.of_group);
      return {both.x, both.x, -both.y};
    } else if constexpr (kHalfScale) {
      const float scale = half_to_float(bits.of_group);
      return {scale, scale, 0.0F};
    } else {
      const float2 of_super = both_halves(bits.of_super);
      const u32 first = bits.of_group & 0xFFU, second = bits.of_group >> 8U;
      if constexpr (kType == Packed::kQ6_K) {
        return {of_super.x * static_cast<float>(static_cast<signed char>(first)),
                of_super.x * static_cast<float>(static_cast<signed char>(second)), 0.0F};
      } else {
        const float scale = of_super.x * static_cast<float>(first);
        return {scale, scale, of_super.y * static_cast<float>(second)};
      }
    }
  }

  static __device__ __forceinline__ Scales scales(const u32* row, const RowLayout& layout,
                                                  u32 group) {
    return scales(scale_bits(row, layout, group));
  }

  /// Weight k of a float type.
  static __device__ __forceinline__ float load(const u32* row, u32 k) {
    if constexpr (kType == Packed::kF32) {
      return __uint_as_float(row[k]);
    } else {
      const u32 bits = row[k / 2] >> (16 * (k % 2)) & 0xFFFFU;
      return kType == Packed::kF16 ? half_to_float(bits) : __uint_as_float(bits << 16U);
    }
  }

  /// Weights k .. k + 7 of a float type; k % 8 == 0.
  static __device__ __forceinline__ void load_8(const u32* row, u32 k, float (&values)[8]) {
    if constexpr (kType == Packed::kF32) {
#pragma unroll
      for (u32 i = 0; i < 8; i += 4) {
        const float4 four = *reinterpret_cast<const float4*>(row + k + i);
        values[i] = four.x, values[i + 1] = four.y, values[i + 2] = four.z, values[i + 3] = four.w;
      }
    } else {
      const uint4 packed = *reinterpret_cast<const uint4*>(row + k / 2);
      const u32 words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
      for (u32 i = 0; i < 4; ++i) {
        if constexpr (kType == Packed::kF16) {
          const float2 both = both_halves(words[i]);
          values[2 * i] = both.x, values[2 * i + 1] = both.y;
        } else {
          values[2 * i] = __uint_as_float(words[i] << 16U);
          values[2 * i + 1] = __uint_as_float(words[i] & 0xFFFF0000U);
        }
      }
    }
  }
};

}  // namespace efimd::kernels
