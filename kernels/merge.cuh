#pragma once

#include "kernels/forms.cuh"
#include "kernels/joined.cuh"

namespace efimd::kernels {

// Joins the splits of attention, in their order.
//   partials [T][H][splits][2 + E]   rows [T] (position, ...)   result [T][H E] of s.forms, times scale
//   grid (T, H E / kElementThreads), block (kElementThreads)
__device__ __forceinline__ void merge(const float* partials, const uint2* rows,
                                      const Result& result, const MergeSizes& s) {
  const u32 at = blockIdx.y * kElementThreads + threadIdx.x;
  if (at >= s.heads * s.head_width) return;  // whole warps, if the result is quantized
  const size_t head = static_cast<size_t>(blockIdx.x) * s.heads + at / s.head_width;
  const u32 width = kPartialHead + s.head_width;
  const float* begin = partials + head * s.splits * width;
  const u32 count = partials_of(rows[blockIdx.x].x, s.splits, s.split_pages);
  Joined joined;
  float value = 0;
  // A partial takes as long to come as a batch of them.
  constexpr u32 kBatch = 8;
  for (u32 first = 0; first < count; first += kBatch) {
    float most[kBatch], sum[kBatch], values[kBatch];
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) {
      const float* partial = begin + (first + i < count ? first + i : count - 1) * width;
      const float2 softmax = *reinterpret_cast<const float2*>(partial);  // E is even
      most[i] = softmax.x, sum[i] = softmax.y;
      values[i] = partial[kPartialHead + at % s.head_width];
    }
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) {
      // After the last partial nothing changes a bit. No branch, which would hold back the loads after it.
      const bool there = first + i < count;
      const float2 shares = joined.take(there ? most[i] : -INFINITY, there ? sum[i] : 0.0F);
      const float next = join(value, values[i], shares);
      value = there ? next : value;
    }
  }
  write_form(result, s.forms, static_cast<size_t>(blockIdx.x) * s.heads * s.head_width + at,
             value / joined.sum * s.scale);
}

}  // namespace efimd::kernels
