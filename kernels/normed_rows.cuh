#pragma once

#include "kernels/forms.cuh"
#include "kernels/norm_rows.cuh"

namespace efimd::kernels {

/// The sum of a row's squares by kNormBlock threads. This one is number `own`: each warp's share to
/// `parts`.
__device__ __forceinline__ void sum_squares(const float* row, u32 cols, u32 own, float* parts) {
  const float squares = warp_sum(share_of_squares(row, 0, cols, own));
  if (own % 32 == 0) parts[own / 32] = squares;
}
/// The factor of such a row: the bits of norm_rows().
__device__ __forceinline__ float scale_of_parts(const float* parts, u32 cols, float epsilon) {
  float squares = 0;
#pragma unroll
  for (u32 i = 0; i < kNormBlock / 32; ++i) squares += parts[i];
  return norm_scale(squares, cols, epsilon);
}

/// Over eight lanes, the same bits in each.
__device__ __forceinline__ float max_of_eight(float value) {
  for (int distance = 4; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, distance));
  return value;
}
__device__ __forceinline__ float sum_of_eight(float value) {
  for (int distance = 4; distance > 0; distance /= 2)
    value += __shfl_xor_sync(kWholeWarp, value, distance);
  return value;
}

/// RMS norms of up to kTokens rows in the shared memory of a block of kWarps warps, quantized: the bits of norm_rows().
template <u32 kTokens, u32 kWarps>
struct NormedRows {
  // So far apart that eight lanes, each with a row of its own, read other banks.
  static constexpr u32 kStrideMax = kNormedColsMax / 4 + 8;
  static __device__ __forceinline__ u32 stride(u32 cols) { return (cols / 4 + 31) / 32 * 32 + 8; }

  alignas(16) u32 quants[kTokens * kStrideMax];  ///< [count][stride(cols)]
  float2 scales[kTokens * kNormedColsMax / 32];  ///< [count][cols / 32]
  float parts[kTokens][kNormBlock / 32];         ///< sums of squares

  // x [count][cols] f32   weight [cols]   cols % 32 == 0; by the whole block
  __device__ __forceinline__ void fill(const float* x, const float* weight, u32 cols, u32 count,
                                       float epsilon) {
    constexpr u32 kRowsAtOnce = 32 * kWarps / kNormBlock;
    const u32 lane = threadIdx.x, thread = threadIdx.y * 32 + lane, own = thread % kNormBlock;
    for (u32 t = thread / kNormBlock; t < count; t += kRowsAtOnce)  // whole warps
      sum_squares(x + t * cols, cols, own, parts[t]);
    __syncthreads();
    // Eight lanes have a group, four of its elements each.
    const u32 groups = cols / 32, fours = (groups + 3) / 4;
    for (u32 t = 0; t < count; ++t) {
      const float scale = scale_of_parts(parts[t], cols, epsilon);
      for (u32 four = threadIdx.y; four < fours; four += kWarps) {
        const u32 group = four * 4 + lane / 8;
        const bool there = group < groups;
        const u32 k = there ? group * 32 + lane % 8 * 4 : 0;
        const float4 of_x = *reinterpret_cast<const float4*>(x + t * cols + k);
        const float4 by = *reinterpret_cast<const float4*>(weight + k);
        const float values[4] = {of_x.x * scale * by.x, of_x.y * scale * by.y,
                                 of_x.z * scale * by.z, of_x.w * scale * by.w};
        const Levels levels(max_of_eight(fmaxf(fmaxf(fabsf(values[0]), fabsf(values[1])),
                                               fmaxf(fabsf(values[2]), fabsf(values[3])))));
        u32 word = 0;
        float sum = 0;  // exact: at most 32 * 127
#pragma unroll
        for (u32 byte = 0; byte < 4; ++byte) {
          const float level = levels.of(values[byte]);
          word |= (static_cast<u32>(static_cast<int>(level)) & 0xFFU) << (8 * byte);
          sum += level;
        }
        sum = sum_of_eight(sum);
        if (!there) continue;
        quants[t * stride(cols) + k / 4] = word;
        if (lane % 8 == 0)
          scales[t * groups + group] = make_float2(levels.scale, sum * levels.scale);
      }
    }
    __syncthreads();
  }
};

}  // namespace efimd::kernels
