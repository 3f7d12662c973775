#pragma once

#include "kernels/device.cuh"

namespace efimd::kernels {

/// The softmaxes of a row's splits, joined one after another: every kernel that joins them gets the
/// same bits.
struct Joined {
  float most = -INFINITY, sum = 0;

  /// Takes the next, or one over nothing (-INFINITY, 0), which changes no bit. The factors of the
  /// values so far (x) and of the next ones (y).
  __device__ __forceinline__ float2 take(float next_most, float next_sum) {
    const float raised = fmaxf(most, next_most);
    const float2 shares = make_float2(exp_from(most, raised), exp_from(next_most, raised));
    most = raised;
    sum = fmaf(next_sum, shares.y, sum * shares.x);
    return shares;
  }
};

__device__ __forceinline__ float join(float value, float next, const float2& shares) {
  return fmaf(next, shares.y, value * shares.x);
}

/// Partials of a row: those of its splits, or the one of them all.
__device__ __forceinline__ u32 partials_of(u32 position, u32 splits, u32 split_pages) {
  return splits == 1 ? 1 : position / 32 / split_pages + 1;
}

}  // namespace efimd::kernels
