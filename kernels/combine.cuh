#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// x += the weighted sum of a row's experts, likeliest first.
//   parts [T][used][D]   weights [T][used]   x [T][D]
//   grid (T D / kElementThreads), block (kElementThreads): a thread for each element
__device__ __forceinline__ void combine(const float* parts, const float* weights, float* x,
                                        const CombineSizes& s) {
  const u32 at = blockIdx.x * kElementThreads + threadIdx.x;
  if (at >= s.rows * s.width) return;
  const u32 row = at / s.width, k = at % s.width;
  float value = x[at];
  for (u32 rank = 0; rank < s.used; ++rank)
    value = fmaf(weights[row * s.used + rank],
                 parts[(static_cast<size_t>(row) * s.used + rank) * s.width + k], value);
  x[at] = value;
}

}  // namespace efimd::kernels
