#pragma once

#include "kernels/device.cuh"

// Products of small matrices by a warp, on the tensor cores: sums[16][8] += a[16][K] b[8][K]. Every lane of the warp
// calls them. Of signed bytes, exact, lane 4g + c holds, each word four bytes of consecutive K:
//   a  K = 32: a[g][4c ..], a[g + 8][4c ..], a[g][16 + 4c ..], a[g + 8][16 + 4c ..];  K = 16: the first two
//   b  K = 32: b[g][4c ..], b[g][16 + 4c ..];  K = 16: the first
//   sums  [g][2c], [g][2c + 1], [g + 8][2c], [g + 8][2c + 1]
// Of halves, K = 16, with sums in f32, each word two of them:
//   a  a[g][2c ..], a[g + 8][2c ..], a[g][8 + 2c ..], a[g + 8][8 + 2c ..]
//   b  b[g][2c ..], b[g][8 + 2c ..]
// K is summed over, so any order of it will do if a and b share it. The device decides how the
// sixteen products of a sum are added. It is the same for every row and column (PTX does not say
// so; the tests on a card do).
#if defined(__CUDACC__)
namespace efimd::kernels {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
// Compute capability 7.5 has this one: a quarter of the larger.
__device__ __forceinline__ void mma_8x8x16(u32 a, u32 b, int& left, int& right) {
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+r"(left), "+r"(right)
      : "r"(a), "r"(b));
}
#endif

__device__ __forceinline__ void mma_16x8x16(u32 a_upper, u32 a_lower, u32 b, int (&sums)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  mma_8x8x16(a_upper, b, sums[0], sums[1]);
  mma_8x8x16(a_lower, b, sums[2], sums[3]);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a_upper), "r"(a_lower), "r"(b));
#endif
}

__device__ __forceinline__ void mma_16x8x32(const u32 (&a)[4], const u32 (&b)[2], int (&sums)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  mma_16x8x16(a[0], a[1], b[0], sums);
  mma_16x8x16(a[2], a[3], b[1], sums);
#else
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

__device__ __forceinline__ void mma_f16(const u32 (&a)[4], const u32 (&b)[2], float (&sums)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[2]), "r"(a[3]), "r"(b[1]));
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

/// Compute capability 7.5 has none: the host takes other kernels there.
__device__ __forceinline__ void mma_bf16(const u32 (&a)[4], const u32 (&b)[2], float (&sums)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __trap();
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace efimd::kernels
#endif
