#pragma once

#include "kernels/device.cuh"

// A step's kernels beside one another (programmatic dependent launch, compute capability 9.0 on; CUDA C++ Programming
// Guide, PTX ISA: griddepcontrol). The next kernel's blocks begin when all of this one have, and are on the card, with
// their first weights on the way, when it ends. Kernels of older cards, and those launched one after another, have
// nothing to wait for.
//
// Every thread of every kernel calls await_operands() before it touches what a kernel or a copy writes. No pointer is
// `__restrict__`: a compiler may take what such a one reads in front of the wait.
namespace efimd::kernels {

#if defined(__CUDACC__)
/// Lets the next kernel begin, and waits until those in front have ended and what they wrote is there.
__device__ __forceinline__ void await_operands() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Begins to bring the 128 bytes around `from` into the L2 cache, where kernels may overlap.
__device__ __forceinline__ void fetch_line(const u32* from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#endif
}
#endif

/// Blocks of a product that are on a card before it has ended the kernel in front: about as many as the largest hold.
constexpr u32 kFirstBlocks = 2048;

/// Begins to fetch the weights of this block's kRows rows, which the model was loaded with. Of an expert's nobody knows yet
/// which they are.
template <u32 kRows>
__device__ __forceinline__ void fetch_weights(const u32* w, const MatmulSizes& s) {
  constexpr u32 kLineWords = 32;
  const u32 first = blockIdx.y * kRows;
  if (s.experts != 0 || blockIdx.x != 0 || blockIdx.z != 0 || blockIdx.y >= kFirstBlocks) return;
  if (first >= s.rows) return;
  const u32 rows = s.rows - first < kRows ? s.rows - first : kRows;
  const u32* begin = w + static_cast<size_t>(first) * s.row.row_words;
  for (u32 word = (threadIdx.y * 32 + threadIdx.x) * kLineWords; word < rows * s.row.row_words;
       word += blockDim.x * blockDim.y * kLineWords)
    fetch_line(begin + word);
}

/// Begins to fetch a row of weights; by a warp.
__device__ __forceinline__ void fetch_row(const u32* row, u32 words) {
  for (u32 word = threadIdx.x * 32; word < words; word += 32 * 32) fetch_line(row + word);
}

}  // namespace efimd::kernels
