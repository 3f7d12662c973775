#pragma once

// The part of CUDA that the kernels use, and nothing else. tests/support/simt.h has the same names.
// If a C++ compiler includes that first (-include), the kernels run, thread by thread, on a CPU.
#include "kernels/sizes.h"

#if defined(__CUDACC__)
#include <cuda_fp16.h>

namespace efimd::kernels {
__device__ __forceinline__ float half_to_float(u32 bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}
/// Nearest even; the caller keeps to +-65504.
__device__ __forceinline__ u32 float_to_half(float value) {
  return __half_as_ushort(__float2half_rn(value));
}
}  // namespace efimd::kernels
#endif

namespace efimd::kernels {

constexpr u32 kWholeWarp = 0xFFFFFFFFU;

/// exp(value - most); of -INFINITY it is 0 for any `most`. Without a branch, because later loads
/// would wait for that.
__device__ __forceinline__ float exp_from(float value, float most) {
  return expf(value == -INFINITY ? -INFINITY : value - most);
}

/// To f16, nearest even, saturating.
__device__ __forceinline__ u32 to_half(float value) {
  return float_to_half(fminf(fmaxf(value, -65504.0F), 65504.0F));
}

__device__ __forceinline__ float2 both_halves(u32 word) {
  return make_float2(half_to_float(word & 0xFFFFU), half_to_float(word >> 16U));
}

/// Words of a token's quants in 8-bit KV, and of its scales; Kv::kQ8 has the layout.
__device__ __forceinline__ u32 quant_words_of(u32 head_width) { return (head_width + 3) / 4; }
__device__ __forceinline__ u32 scale_words_of(u32 head_width) {
  return ((head_width + 31) / 32 + 1) / 2;
}

/// Sum over the warp, the same bits in every lane.
__device__ __forceinline__ float warp_sum(float value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kWholeWarp, value, distance);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, distance));
  return value;
}

/// Sum over a block of kThreads threads, a whole number of warps, the same bits in every thread.
template <int kThreads>
__device__ __forceinline__ float block_sum(float value) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float parts[kWarps];
  value = warp_sum(value);
  __syncthreads();  // nobody reads the last sum's parts any more
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kWarps; ++i) sum += parts[i];
  return sum;
}

}  // namespace efimd::kernels
