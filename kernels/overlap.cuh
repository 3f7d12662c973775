#pragma once

#include "kernels/device.cuh"

// A step's kernels beside one another (programmatic dependent launch, compute capability 9.0 on; CUDA C++ Programming
// Guide, PTX ISA: griddepcontrol). The next kernel's blocks begin when all of this one have begun.
// When this one ends they are on the card, with their first weights on the way. Kernels of older
// cards, and those launched one after another, have nothing to wait for.
//
// Every thread of every kernel calls await_operands() before it touches what a kernel or a copy
// writes. No pointer is `__restrict__`, because a compiler may move the reads of such a pointer
// before the wait.
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

/// Begins to fetch the first weights of kRows rows; by a warp, a line by each lane. So much of all blocks that are on a card at
/// once fits the L2 cache.
template <u32 kRows, class Row>
__device__ __forceinline__ void fetch_rows(const Row& row, u32 words) {
  constexpr u32 kLines = 32 / kRows;
  const u32 word = threadIdx.x % kLines * 32;
  if (word < words) fetch_line(row(threadIdx.x / kLines) + word);
}

/// The same of a product's block of kRows rows, which go to kWarps warps in turn. Of an expert's nobody knows yet which they
/// are; tiles of more tokens find them in the cache.
template <u32 kRows, u32 kWarps>
__device__ __forceinline__ void fetch_weights(const u32* w, const MatmulSizes& s) {
  if (s.experts != 0 || blockIdx.x != 0) return;
  const u32 first = blockIdx.z * kMatmulRowsMax + blockIdx.y * kRows + threadIdx.y;
  fetch_rows<kRows / kWarps>(
      [&](u32 i) {
        const u32 index = first + i * kWarps;
        return w + static_cast<size_t>(index < s.rows ? index : s.rows - 1) * s.row.row_words;
      },
      s.row.row_words);
}

/// The same of a norm's weights, which all blocks need; by the first.
__device__ __forceinline__ void fetch_norm(const float* weight, u32 cols) {
  const u32 at = (threadIdx.y * 32 + threadIdx.x) * 32;
  if (blockIdx.y == 0 && at < cols) fetch_line(reinterpret_cast<const u32*>(weight + at));
}

}  // namespace efimd::kernels
