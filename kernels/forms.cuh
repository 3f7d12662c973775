#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

/// The place of a result; kernels::Forms says its form.
struct Result {
  float* floats;
  u32* quants;
  float2* scales;  ///< of groups of 32: (scale, sum of quants * scale)
  unsigned short* halves;
};

/// Nearest even.
__device__ __forceinline__ u32 float_to_bfloat(float value) {
  const u32 bits = __float_as_uint(value);
  if (value != value) return bits >> 16U | 0x40U;  // not a number; rounding could make it infinite
  return (bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U;
}

/// How a group is quantized whose largest value has this size.
struct Levels {
  float scale, inverse;

  __device__ __forceinline__ explicit Levels(float largest) {
    const bool zero = largest < 1e-30F;
    scale = zero ? 0.0F : largest / 127.0F;
    inverse = zero ? 0.0F : 127.0F / largest;
  }
  __device__ __forceinline__ float of(float value) const {
    return fminf(fmaxf(rintf(value * inverse), -127.0F), 127.0F);
  }
};

// Writes element `at` of a result, this lane's. If the result is quantized, the whole warp calls
// this, its lanes for the elements of a group.
__device__ __forceinline__ void write_form(const Result& to, const Forms& forms, size_t at,
                                           float value) {
  if (forms.floats != 0) to.floats[at] = value;
  if (forms.halves != 0)
    to.halves[at] =
        static_cast<unsigned short>(forms.halves == 1 ? to_half(value) : float_to_bfloat(value));
  if (forms.quants == 0) return;
  const Levels levels(warp_max(fabsf(value)));
  const float level = levels.of(value);
  reinterpret_cast<signed char*>(to.quants)[at] = static_cast<signed char>(level);
  const float sum = warp_sum(level);  // exact: at most 32 * 127
  if (at % 32 == 0) to.scales[at / 32] = make_float2(levels.scale, sum * levels.scale);
}

}  // namespace efimd::kernels
