#pragma once

#include "kernels/mma.cuh"
#include "kernels/weights.cuh"

// Products of a group of 32 quantized weights of 16 rows with 8 tokens, on the tensor cores. Of
// types with one scale, a lane takes eight neighbours of a row and of a token; of others, quads of
// both halves.
namespace efimd::kernels {

// The integer that is added to a sum of products of a group, |sum| < 2^19. The bits are then those
// of the float 1.5 * 2^23 + sum, and a subtraction makes the sum a float. Conversions run at a
// quarter of that rate or less.
constexpr int kFloatBits = 0x4B400000;
__device__ __forceinline__ float float_of_sum(int sum) {
  return __uint_as_float(static_cast<u32>(sum)) - 12582912.0F;
}

/// This lane's part of a row's group, whose words in the planes of low and high bits begin there.
template <Packed kType>
__device__ __forceinline__ void row_quads(const u32* low, const u32* high, u32& first,
                                          u32& second) {
  using Of = Weights<kType>;
  const u32 c = threadIdx.x % 4;
  if constexpr (kType == Packed::kQ8_0) {
    const uint2 both = *reinterpret_cast<const uint2*>(low + 2 * c);
    first = both.x, second = both.y;
  } else if constexpr (Of::kHalves) {
    first = Of::quad(low[c / 2], high[0], c);
    second = Of::quad(low[2 + c / 2], high[1], 4 + c);
  } else {
    const u32 word = low[c], bits = Of::kHigh1 ? high[0] : 0;
    first = Of::quad(word, bits, 2 * c);
    second = Of::quad(word, bits, 2 * c + 1);
  }
}

/// And of a token's.
template <Packed kType>
__device__ __forceinline__ void token_quads(const u32* x, u32 (&b)[2]) {
  const u32 c = threadIdx.x % 4;
  if constexpr (Weights<kType>::kHalves) {
    b[0] = x[c], b[1] = x[4 + c];
  } else {
    const uint2 both = *reinterpret_cast<const uint2*>(x + 2 * c);
    b[0] = both.x, b[1] = both.y;
  }
}

/// A row's scale, and that of its last half or its minimum.
template <Packed kType>
__device__ __forceinline__ float2 row_scales(const typename Weights<kType>::ScaleBits& bits) {
  const auto scales = Weights<kType>::scales(bits);
  return make_float2(scales.low, Weights<kType>::kHalves ? scales.high : scales.minimum);
}

/// Adds a group's products to the sums of its class: of rows g and g + 8 and tokens 2c and 2c + 1,
/// each with its scales. Types with a minimum also need the sums of the tokens' quants times their
/// scales.
template <Packed kType>
__device__ __forceinline__ void add_products(const u32 (&a)[4], const u32 (&b)[2],
                                             const float2 (&of_rows)[2], const float2& of_tokens,
                                             const float2& of_sums, float (&sums)[4]) {
  using Of = Weights<kType>;
  int low[4] = {kFloatBits, kFloatBits, kFloatBits, kFloatBits};
  int high[4] = {kFloatBits, kFloatBits, kFloatBits, kFloatBits};
  if constexpr (Of::kHalves) {
    mma_16x8x16(a[0], a[1], b[0], low);
    mma_16x8x16(a[2], a[3], b[1], high);
  } else {
    mma_16x8x32(a, b, low);
  }
#pragma unroll
  for (u32 i = 0; i < 4; ++i) {
    const float2 of_row = of_rows[i / 2];
    const float of_token = i % 2 == 0 ? of_tokens.x : of_tokens.y;
    float& sum = sums[i];
    sum = fmaf(float_of_sum(low[i]), of_row.x * of_token, sum);
    if constexpr (Of::kHalves) sum = fmaf(float_of_sum(high[i]), of_row.y * of_token, sum);
    if constexpr (Of::kMinimum) sum = fmaf(-of_row.y, i % 2 == 0 ? of_sums.x : of_sums.y, sum);
  }
}

}  // namespace efimd::kernels
