#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

// The experts of each row: those with the largest logits, the lower index first among equals. Their
// weights are the softmax over these logits.
//   logits [T][experts]   chosen, weights [T][used], likeliest first
//   grid (T / kElementThreads), block (kElementThreads): a thread for each row
__device__ __forceinline__ void route(const float* logits, u32* chosen, float* weights,
                                      const RouteSizes& s) {
  const u32 row = blockIdx.x * kElementThreads + threadIdx.x;
  if (row >= s.rows) return;
  const float* of_row = logits + static_cast<size_t>(row) * s.experts;
  float last = INFINITY, first = 0, sum = 0;
  u32 last_expert = 0;
  for (u32 rank = 0; rank < s.used; ++rank) {
    float best = -INFINITY;
    u32 expert = 0;
    for (u32 e = 0; e < s.experts; ++e) {
      const float logit = of_row[e];
      const bool open = rank == 0 || logit < last || (logit == last && e > last_expert);
      if (open && logit > best) {
        best = logit;
        expert = e;
      }
    }
    if (rank == 0) first = best;
    last = best;
    last_expert = expert;
    chosen[row * s.used + rank] = expert;
    weights[row * s.used + rank] = expf(best - first);
    sum += expf(best - first);
  }
  for (u32 rank = 0; rank < s.used; ++rank) weights[row * s.used + rank] /= sum;
}

}  // namespace efimd::kernels
