#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

/// An index, or the last of `count` for those past it.
__device__ __forceinline__ u32 at_most(u32 index, u32 count) {
  return index < count ? index : count - 1;
}

/// An output of a product: row n of the part, for a token.
__device__ __forceinline__ void write_product(float sum, const float* bias, float* result, u32 n,
                                              u32 token, const MatmulSizes& s) {
  float* to = result + static_cast<size_t>(token) * s.out_stride + s.first + n;
  const float product = s.biased != 0 ? sum + bias[s.first + n] : sum;
  *to = s.add != 0 ? *to + product : product;
}

}  // namespace efimd::kernels
