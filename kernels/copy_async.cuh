#pragma once

#include "kernels/device.cuh"

// Copies of 16 aligned bytes from device memory to shared memory, without registers. A thread's
// copies belong to the batch that it closes next, and it waits for the batch later. Compute
// capability 7.5 copies at once.
#if defined(__CUDACC__)
namespace efimd::kernels {

__device__ __forceinline__ void copy_16(u32* shared, const u32* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(static_cast<u32>(__cvta_generic_to_shared(shared))), "l"(from)
               : "memory");
#else
  *reinterpret_cast<uint4*>(shared) = *reinterpret_cast<const uint4*>(from);
#endif
}

__device__ __forceinline__ void close_batch() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Until all batches of this thread but the `kOpen` closed last are there. Other threads' need a barrier too.
template <int kOpen>
__device__ __forceinline__ void wait_for_batches() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(kOpen) : "memory");
#endif
}

}  // namespace efimd::kernels
#endif
