#pragma once

#include "kernels/forms.cuh"

namespace efimd::kernels {

/// The factor of a row of `width` whose squares have this sum.
__device__ __forceinline__ float norm_scale(float squares, u32 width, float epsilon) {
  return 1.0F / sqrtf(squares / static_cast<float>(width) + epsilon);
}

/// Of the sum of a row's squares around `mean` the share of thread `own` of kNormBlock. In batches: a value takes as long to
/// come as several.
__device__ __forceinline__ float share_of_squares(const float* row, float mean, u32 width,
                                                  u32 own) {
  constexpr u32 kBatch = 4;
  float squares = 0;
  for (u32 first = own; first < width; first += kBatch * kNormBlock) {
    float values[kBatch];
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) {
      const u32 k = first + i * kNormBlock;
      values[i] = row[k < width ? k : own];
    }
#pragma unroll
    for (u32 i = 0; i < kBatch; ++i) {
      const float value = first + i * kNormBlock < width ? values[i] - mean : 0.0F;
      squares = fmaf(value, value, squares);
    }
  }
  return squares;
}

// Norms of chosen rows of x: RMS, or layer norm with its bias.
//   rows [N] of x   x [.][D] f32   weight, bias [D]   result [N][D] of s.forms
//   grid (N), block (kNormBlock).  Sums in f32, each thread its share, then over the threads.
__device__ __forceinline__ void norm_rows(const u32* rows, const float* x, const float* weight,
                                          const float* bias, const Result& result,
                                          const NormSizes& s) {
  const float* from = x + static_cast<size_t>(rows[blockIdx.x]) * s.width;
  float mean = 0;
  if (s.layer != 0) {
    float sum = 0;
    for (u32 k = threadIdx.x; k < s.width; k += kNormBlock) sum += from[k];
    mean = block_sum<kNormBlock>(sum) / static_cast<float>(s.width);
  }
  const float squares = share_of_squares(from, mean, s.width, threadIdx.x);
  const float scale = norm_scale(block_sum<kNormBlock>(squares), s.width, s.epsilon);
  for (u32 k = threadIdx.x; k < s.width; k += kNormBlock) {
    const float value = (from[k] - mean) * scale * weight[k];
    write_form(result, s.forms, static_cast<size_t>(blockIdx.x) * s.width + k,
               s.layer != 0 ? value + bias[k] : value);
  }
}

}  // namespace efimd::kernels
