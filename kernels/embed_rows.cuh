#pragma once

#include "kernels/weights.cuh"

namespace efimd::kernels {

// Embedding rows of the tokens: x = row * scale.
//   tokens [T]   w  rows first .. last - 1 of the embedding   x [T][D] f32
//   grid (T), block (kElementThreads).  Tokens of other parts are left to these.
template <Packed kType>
__device__ void embed_rows(const u32* tokens, const u32* w, float* x, const EmbedSizes& s) {
  const u32 t = blockIdx.x;
  const u32 token = tokens[t];
  if (token < s.first || token >= s.last) return;
  const u32* row = w + static_cast<size_t>(token - s.first) * s.row.row_words;
  float* out = x + static_cast<size_t>(t) * s.width;
  using Of = Weights<kType>;
  if constexpr (!Of::kQuantized) {
    for (u32 k = threadIdx.x; k < s.width; k += blockDim.x) out[k] = Of::load(row, k) * s.scale;
  } else {
    for (u32 group = threadIdx.x; group < s.width / 32; group += blockDim.x) {
      u32 quants[8];
      Of::load_group(row, s.row, group, quants);
      const auto scales = Of::scales(row, s.row, group);
#pragma unroll
      for (u32 k = 0; k < 32; ++k) {
        const auto quant = static_cast<signed char>(quants[k / 4] >> (8 * (k % 4)) & 0xFFU);
        const float scaled =
            __fmul_rn(k < 16 ? scales.low : scales.high, static_cast<float>(quant));
        out[group * 32 + k] = (scaled - scales.minimum) * s.scale;
      }
    }
  }
}

}  // namespace efimd::kernels
