#pragma once

// Matmul over F32, F16 and BF16 weights, over the Vector of the file that includes this. Weights
// are read from the mapped file and converted in registers.
//
// Each output element has one register of sums (lane k % kLanes), filled in the order of k, and one
// reduction at the end. That holds in every tile shape (kernels.h, batch invariance).
#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {
namespace {

struct FloatWeights {
  static constexpr int kBytes = 4;
  static Vector::Reg load(const unsigned char* at) { return load_part(at, Vector::kLanes); }
  static Vector::Reg load_part(const unsigned char* at, int count) {
    if (count < Vector::kLanes) return Vector::load_part(at, count);
    Vector::Reg value;
    __builtin_memcpy(&value, at, sizeof value);
    return value;
  }
};
struct HalfWeights {
  static constexpr int kBytes = 2;
  static Vector::Reg load(const unsigned char* at) { return Vector::load_half(at); }
  static Vector::Reg load_part(const unsigned char* at, int count) {
    return Vector::load_half_part(at, count);
  }
};
struct BfloatWeights {
  static constexpr int kBytes = 2;
  static Vector::Reg load(const unsigned char* at) { return Vector::load_bfloat(at); }
  static Vector::Reg load_part(const unsigned char* at, int count) {
    return Vector::load_bfloat_part(at, count);
  }
};

inline void store_product(const Outputs& out, int t, int n, float product) {
  float* target =
      out.values + static_cast<std::size_t>(t) * out.stride + static_cast<std::size_t>(n);
  if (out.bias != nullptr) product += out.bias[n];
  *target = out.store == Store::kAdd ? *target + product : product;
}

/// R rows from `n` times N tokens from `t`.
template <class W, int R, int N>
void dot_tile(const Weights& weights, int n, const Inputs& in, int t, const Outputs& out) {
  const int cols = weights.cols;
  const unsigned char* row = weights.data + static_cast<std::size_t>(n) * weights.row_bytes;
  const float* x = in.values + static_cast<std::size_t>(t) * static_cast<std::size_t>(cols);
  Vector::Reg sums[R][N];
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < N; ++i) sums[r][i] = Vector::zero();
  int k = 0;
  for (; k + Vector::kLanes <= cols; k += Vector::kLanes) {
    Vector::Reg inputs[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      inputs[i] = Vector::load(x + static_cast<std::ptrdiff_t>(i) * cols + k);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const unsigned char* at =
          row + static_cast<std::size_t>(r) * weights.row_bytes + k * W::kBytes;
      // Prefetches the same columns of the next R rows; that is harmless past the mapping.
      __builtin_prefetch(at + R * weights.row_bytes);
      const Vector::Reg w = W::load(at);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) sums[r][i] = Vector::fma(w, inputs[i], sums[r][i]);
    }
  }
  if (const int rest = cols - k; rest > 0) {
    for (int r = 0; r < R; ++r) {
      const unsigned char* at =
          row + static_cast<std::size_t>(r) * weights.row_bytes + k * W::kBytes;
      const Vector::Reg w = W::load_part(at, rest);
      for (int i = 0; i < N; ++i) {
        const Vector::Reg input =
            Vector::load_part(x + static_cast<std::ptrdiff_t>(i) * cols + k, rest);
        sums[r][i] = Vector::fma(w, input, sums[r][i]);
      }
    }
  }
  for (int r = 0; r < R; ++r)
    for (int i = 0; i < N; ++i) store_product(out, t + i, n + r, Vector::sum(sums[r][i]));
}

template <class W, int R>
void dot_rows(const Weights& weights, int n, const Inputs& in, const Outputs& out) {
  constexpr int kTokens = Vector::kTileTokens;
  int t = 0;
  for (; t + kTokens <= in.tokens; t += kTokens) dot_tile<W, R, kTokens>(weights, n, in, t, out);
  if constexpr (kTokens > 2)
    for (; t + 2 <= in.tokens; t += 2) dot_tile<W, R, 2>(weights, n, in, t, out);
  for (; t < in.tokens; ++t) dot_tile<W, R, 1>(weights, n, in, t, out);
}

template <class W>
void dot_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  int n = rows.first;
  for (; n + Vector::kTileRows <= rows.last; n += Vector::kTileRows)
    dot_rows<W, Vector::kTileRows>(weights, n, in, out);
  for (; n < rows.last; ++n) dot_rows<W, 1>(weights, n, in, out);
}

}  // namespace
}  // namespace efimd::engine::cpu
