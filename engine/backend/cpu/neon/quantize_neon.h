#pragma once

// Quantization of inputs, for the tables of NEON.
#include <arm_neon.h>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/simd_rows.h"

namespace efimd::engine::cpu {
namespace {

void quantize(const float* x, int width, const QuantizedRow& out) {
  for (int group = 0; group < width / kGroup; ++group, x += kGroup) {
    std::int8_t* quants = out.quants + static_cast<std::ptrdiff_t>(group) * kGroup;
    const float largest = largest_of_group(x);
    const bool zero = largest < kQuantizeFloor;
    const float inverse = zero ? 0.0F : 127.0F / largest;
    out.scales[group] = zero ? 0.0F : largest / 127.0F;
    std::int32_t sums[2];
    for (int half = 0; half < 2; ++half) {
      int32x4_t levels[4];
      for (int j = 0; j < 4; ++j)
        levels[j] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 16 * half + 4 * j), inverse));
      const int16x8_t low = vcombine_s16(vqmovn_s32(levels[0]), vqmovn_s32(levels[1]));
      const int16x8_t high = vcombine_s16(vqmovn_s32(levels[2]), vqmovn_s32(levels[3]));
      vst1q_s8(quants + 16 * half, vcombine_s8(vqmovn_s16(low), vqmovn_s16(high)));
      sums[half] = vaddlvq_s16(vaddq_s16(low, high));
    }
    out.half_offsets[2 * group] = -128 * sums[0];
    out.half_offsets[2 * group + 1] = -128 * sums[1];
    out.offsets[group] = -128 * (sums[0] + sums[1]);
    out.totals[group] = static_cast<float>(sums[0] + sums[1]) * out.scales[group];
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
