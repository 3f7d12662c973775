#pragma once

#include "kernels/forms.cuh"

namespace efimd::kernels {

/// SiLU, or GELU by its tanh.
__device__ __forceinline__ float activated(float x, u32 gelu) {
  // 1.59576912 is 2 sqrt(2 / pi).
  const float slope = gelu != 0 ? 1.59576912F * fmaf(0.044715F * x * x, x, x) : x;
  return x / __fadd_rn(1.0F, expf(-slope));
}

// activation(gate) * up * scale, or activation(x) * scale, element by element.
//   x [T][2 F] f32, gates first, or [T][F]   result [T][F] of s.forms
//   grid (F / kElementThreads, T), block (kElementThreads)
__device__ __forceinline__ void activate(const float* x, const Result& result,
                                         const ActivateSizes& s) {
  const u32 k = blockIdx.x * kElementThreads + threadIdx.x;
  if (k >= s.width) return;  // whole warps, if the result is quantized
  const float* row = x + static_cast<size_t>(blockIdx.y) * s.width * (s.gated != 0 ? 2 : 1);
  const float active = activated(row[k], s.gelu);
  write_form(result, s.forms, static_cast<size_t>(blockIdx.y) * s.width + k,
             (s.gated != 0 ? active * row[s.width + k] : active) * s.scale);
}

}  // namespace efimd::kernels
