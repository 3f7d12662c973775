#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// gate = activation(gate) (* up) * scale, element by element.
//   gate, up [count] f32   grid (count / kElementThreads), block (kElementThreads)
__device__ __forceinline__ void activate(float* gate, const float* up, const ActivateSizes& s) {
  const u32 i = blockIdx.x * kElementThreads + threadIdx.x;
  if (i >= s.count) return;
  const float x = gate[i];
  // 1.59576912 is 2 sqrt(2 / pi).
  const float slope = s.gelu != 0 ? 1.59576912F * (x + 0.044715F * x * x * x) : x;
  const float active = x / (1.0F + expf(-slope));
  gate[i] = (s.gated != 0 ? active * up[i] : active) * s.scale;
}

}  // namespace efimd::kernels
