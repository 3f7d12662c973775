#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// Rows in groups of 32: scale = max|x| / 127, quant = nearest(x / scale); a group under 1e-30 is all zero.
//   x [...] f32   quants [...] signed bytes   scales [.../32] (scale, sum of quants * scale)
//   grid (groups / kQuantizeWarps), block (32 kQuantizeWarps): a warp for each group, a lane for each value
__device__ __forceinline__ void quantize_rows(const float* x, u32* quants, float2* scales,
                                              const QuantizeSizes& s) {
  const u32 group = blockIdx.x * kQuantizeWarps + threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  if (group >= s.groups) return;
  const size_t at = static_cast<size_t>(group) * 32 + lane;
  const float value = x[at];
  const float largest = warp_max(fabsf(value));
  const bool zero = largest < 1e-30F;
  const float inverse = zero ? 0.0F : 127.0F / largest;
  const float scale = zero ? 0.0F : largest / 127.0F;
  const float level = fminf(fmaxf(rintf(value * inverse), -127.0F), 127.0F);
  reinterpret_cast<signed char*>(quants)[at] = static_cast<signed char>(level);
  const float sum = warp_sum(level);  // exact: at most 32 * 127
  if (lane == 0) scales[group] = make_float2(scale, sum * scale);
}

}  // namespace efimd::kernels
