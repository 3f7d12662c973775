#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

/// Where a result goes whose form kernels::Forms says.
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

// Writes element `at` of a result, this lane's. Where it is quantized the whole warp calls this, its lanes for the elements of a group.
__device__ __forceinline__ void write_form(const Result& to, const Forms& forms, size_t at,
                                           float value) {
  if (forms.floats != 0) to.floats[at] = value;
  if (forms.halves != 0)
    to.halves[at] = static_cast<unsigned short>(
        forms.halves == 1 ? float_to_half(fminf(fmaxf(value, -65504.0F), 65504.0F))
                          : float_to_bfloat(value));
  if (forms.quants == 0) return;
  const float largest = warp_max(fabsf(value));
  const bool zero = largest < 1e-30F;
  const float inverse = zero ? 0.0F : 127.0F / largest;
  const float scale = zero ? 0.0F : largest / 127.0F;
  const float level = fminf(fmaxf(rintf(value * inverse), -127.0F), 127.0F);
  reinterpret_cast<signed char*>(to.quants)[at] = static_cast<signed char>(level);
  const float sum = warp_sum(level);  // exact: at most 32 * 127
  if (at % 32 == 0) to.scales[at / 32] = make_float2(scale, sum * scale);
}

}  // namespace efimd::kernels
