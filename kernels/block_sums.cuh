#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

/// The partial products of a block's warps, of 16 rows with 8 tokens, laid out as in mma.cuh. They
/// lie in shared memory and are added up in the warps' order.
template <u32 kWarps>
struct BlockSums {
  float parts[kWarps][kTokensOfTile][16];

  /// This warp's.
  __device__ __forceinline__ void put(const float (&sums)[4]) {
    const u32 g = threadIdx.x / 4, c = threadIdx.x % 4;
#pragma unroll
    for (u32 i = 0; i < 4; ++i) parts[threadIdx.y][2 * c + i % 2][g + i / 2 * 8] = sums[i];
  }
  /// Call it after a barrier.
  __device__ __forceinline__ float sum(u32 token, u32 row) const {
    float total = 0;
#pragma unroll
    for (u32 warp = 0; warp < kWarps; ++warp) total += parts[warp][token][row];
    return total;
  }
};

}  // namespace efimd::kernels
