#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// Joins the splits of attention, in their order.
//   records [T][H][splits][2 + E]   rows [T] (position, ...)   attended [T][H][E], times scale
//   grid (T, H), block (32)
__device__ __forceinline__ void merge(const float* records, const uint2* rows, float* attended,
                                      const MergeSizes& s) {
  const size_t row = static_cast<size_t>(blockIdx.x) * s.heads + blockIdx.y;
  const u32 width = kRecordHead + s.head_width;
  const float* begin = records + row * s.splits * width;
  const u32 count = rows[blockIdx.x].x / 32 / s.split_pages + 1;
  float most = begin[0];
  for (u32 i = 1; i < count; ++i) most = fmaxf(most, begin[i * width]);
  float sum = 0;
  for (u32 i = 0; i < count; ++i)
    sum = fmaf(begin[i * width + 1], expf(begin[i * width] - most), sum);
  for (u32 e = threadIdx.x; e < s.head_width; e += 32) {
    float value = 0;
    for (u32 i = 0; i < count; ++i)
      value = fmaf(begin[i * width + kRecordHead + e], expf(begin[i * width] - most), value);
    attended[row * s.head_width + e] = value / sum * s.scale;
  }
}

}  // namespace efimd::kernels
