// The specification: what every other table must compute, written for reading.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/backend/cpu/kernels/attention_scalar.h"
#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/kernels/unaligned.h"
#include "engine/backend/cpu/kernels/weight_blocks.h"

namespace efimd::engine::cpu {

namespace {

struct ReadF32 {
  static constexpr int kBytes = 4;
  static float at(const unsigned char* data) { return read<float>(data); }
};
struct ReadF16 {
  static constexpr int kBytes = 2;
  static float at(const unsigned char* data) { return half_to_float(read<std::uint16_t>(data)); }
};
struct ReadBF16 {
  static constexpr int kBytes = 2;
  static float at(const unsigned char* data) { return bfloat_to_float(read<std::uint16_t>(data)); }
};

/// sum over k of row[k] * x[k]; k goes to lane k % 8, the lanes are added in order.
template <class Reader>
float dot(const unsigned char* row, const float* x, int cols) {
  constexpr int kLanes = 8;
  float lanes[kLanes] = {};
  for (int k = 0; k < cols; ++k)
    lanes[k % kLanes] += Reader::at(row + static_cast<std::size_t>(k) * Reader::kBytes) * x[k];
  float sum = 0.0F;
  for (const float lane : lanes) sum += lane;
  return sum;
}

/// Over runs of weights that share a scale: (integer dot product) * (weight scale * input scale) -
/// minimum * (sum of the input's quants) * (input scale).
float dot_quantized(const Weights& weights, const unsigned char* row, const std::int8_t* x,
                    const float* scales) {
  float sum = 0.0F;
  for (int run = 0; run < weights.cols / kRunWeights; ++run, x += kRunWeights) {
    const WeightRun w = read_run(weights.type, row, run);
    const float x_scale = scales[run * kRunWeights / kGroup];
    std::int32_t products = 0;
    std::int32_t x_sum = 0;
    for (int i = 0; i < kRunWeights; ++i) {
      products += w.quants[i] * x[i];
      x_sum += x[i];
    }
    sum += static_cast<float>(products) * (w.scale * x_scale);
    sum -= w.minimum * (static_cast<float>(x_sum) * x_scale);
  }
  return sum;
}

float dot_any(const Weights& weights, int n, const Inputs& in, int t) {
  const unsigned char* row = weights.data + static_cast<std::size_t>(n) * weights.row_bytes;
  const auto offset = static_cast<std::size_t>(t) * static_cast<std::size_t>(weights.cols);
  switch (weights.type) {
    case WeightType::kF32:
      return dot<ReadF32>(row, in.values + offset, weights.cols);
    case WeightType::kF16:
      return dot<ReadF16>(row, in.values + offset, weights.cols);
    case WeightType::kBF16:
      return dot<ReadBF16>(row, in.values + offset, weights.cols);
    default:
      return dot_quantized(weights, row, in.quants + offset, in.scales + offset / kGroup);
  }
}

void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  for (int n = rows.first; n < rows.last; ++n) {
    for (int t = 0; t < in.tokens; ++t) {
      float& target =
          out.values[static_cast<std::size_t>(t) * out.stride + static_cast<std::size_t>(n)];
      const float product = dot_any(weights, n, in, t) + (out.bias != nullptr ? out.bias[n] : 0.0F);
      target = out.store == Store::kAdd ? target + product : product;
    }
  }
}

void rms_norm(const float* x, const float* weight, int width, float epsilon, float* out) {
  double squares = 0.0;
  for (int i = 0; i < width; ++i) squares += static_cast<double>(x[i]) * x[i];
  const float scale = static_cast<float>(1.0 / std::sqrt(squares / width + epsilon));
  for (int i = 0; i < width; ++i) out[i] = x[i] * scale * weight[i];
}

void quantize(const float* x, int width, const QuantizedRow& out) {
  for (int group = 0; group < width / kGroup; ++group, x += kGroup) {
    float largest = 0.0F;
    for (int i = 0; i < kGroup; ++i) largest = std::max(largest, std::fabs(x[i]));
    const bool zero = largest < kQuantizeFloor;
    const float inverse = zero ? 0.0F : 127.0F / largest;
    out.scales[group] = zero ? 0.0F : largest / 127.0F;
    std::int32_t sums[2] = {};
    for (int i = 0; i < kGroup; ++i) {
      // fmax and fmin drop a NaN, which no integer can hold.
      const float level = std::fmin(std::fmax(std::nearbyint(x[i] * inverse), -127.0F), 127.0F);
      out.quants[group * kGroup + i] = static_cast<std::int8_t>(level);
      sums[i / kRunWeights] += static_cast<std::int32_t>(level);
    }
    for (int half = 0; half < 2; ++half) out.half_offsets[2 * group + half] = -128 * sums[half];
    out.offsets[group] = -128 * (sums[0] + sums[1]);
    out.totals[group] = static_cast<float>(sums[0] + sums[1]) * out.scales[group];
  }
}

void layer_norm(const float* x, const float* weight, const float* bias, int width, float epsilon,
                float* out) {
  double sum = 0.0;
  for (int i = 0; i < width; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / width;
  double squares = 0.0;
  for (int i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1.0 / std::sqrt(squares / width + static_cast<double>(epsilon));
  for (int i = 0; i < width; ++i)
    out[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
}

void silu_mul(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; ++i)
    out[i] = gate[i] / (1.0F + std::exp(-gate[i])) * (up != nullptr ? up[i] : 1.0F);
}

void gelu_mul(const float* gate, const float* up, int count, float* out) {
  for (int i = 0; i < count; ++i) {
    const float x = gate[i];
    const float slope = kGeluSlope * (x + kGeluCube * x * x * x);
    out[i] = x / (1.0F + std::exp(-slope)) * (up != nullptr ? up[i] : 1.0F);
  }
}

void to_half(const float* x, int count, std::uint16_t* out) {
  for (int i = 0; i < count; ++i) out[i] = float_to_half(std::clamp(x[i], -kHalfMax, kHalfMax));
}

}  // namespace

const CpuKernels& scalar_kernels() {
  static constexpr CpuKernels kKernels{matmul,   attention_scalar, rms_norm,
                                       quantize, silu_mul,         layer_norm,
                                       gelu_mul, to_half,          attention_kv8_scalar};
  return kKernels;
}

}  // namespace efimd::engine::cpu
