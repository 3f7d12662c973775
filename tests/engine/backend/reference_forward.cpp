#include "tests/engine/backend/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using engine::LayerWeights;
using engine::ModelShape;
using engine::TensorView;
using Vector = std::vector<double>;
using Rows = std::vector<Vector>;

Vector times(const TensorView& matrix, const Vector& x, const TensorView& bias = {}) {
  Vector out;
  for (std::int64_t n = 0; n < matrix.rows; ++n) {
    double sum = bias.present() ? element(bias, 0, n) : 0;
    for (std::int64_t k = 0; k < matrix.cols; ++k)
      sum += element(matrix, n, k) * x[static_cast<std::size_t>(k)];
    out.push_back(sum);
  }
  return out;
}

Vector normed(const Vector& x, const TensorView& weight, double epsilon) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  Vector out;
  for (std::size_t i = 0; i < x.size(); ++i)
    out.push_back(x[i] / std::sqrt(squares / static_cast<double>(x.size()) + epsilon) *
                  element(weight, 0, static_cast<std::int64_t>(i)));
  return out;
}

void add(Vector& x, const Vector& y) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void rotate(const ModelShape& shape, std::size_t position, Vector& heads) {
  const auto width = static_cast<std::size_t>(shape.head_width);
  const auto half = static_cast<std::size_t>(shape.rope_width) / 2;
  const bool halves = shape.rope_pairs == engine::RopePairs::kHalves;
  for (std::size_t head = 0; head < heads.size(); head += width) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) * shape.rope_scale *
          std::pow(shape.rope_base, -2.0 * static_cast<double>(i) / shape.rope_width);
      double& a = heads[head + (halves ? i : 2 * i)];
      double& b = heads[head + (halves ? i + half : 2 * i + 1)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

/// Attention of the row at `position` over rows 0 .. position.
Vector attend(const ModelShape& shape, std::size_t position, const Vector& q, const Rows& keys,
              const Rows& values) {
  const auto width = static_cast<std::size_t>(shape.head_width);
  const auto group = static_cast<std::size_t>(shape.heads / shape.kv_heads);
  Vector out(q.size());
  for (std::size_t head = 0; head < static_cast<std::size_t>(shape.heads); ++head) {
    const std::size_t kv = head / group * width;
    Vector weights;
    for (std::size_t c = 0; c <= position; ++c) {
      double score = 0;
      for (std::size_t e = 0; e < width; ++e) score += q[head * width + e] * keys[c][kv + e];
      weights.push_back(score / std::sqrt(shape.head_width));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (std::size_t c = 0; c <= position; ++c)
      for (std::size_t e = 0; e < width; ++e)
        out[head * width + e] += weights[c] / sum * values[c][kv + e];
  }
  return out;
}

void run_layer(const ModelShape& shape, const LayerWeights& layer, Rows& x) {
  Rows queries, keys, values;
  for (std::size_t t = 0; t < x.size(); ++t) {
    const Vector input = normed(x[t], layer.attention_norm, shape.norm_epsilon);
    queries.push_back(times(layer.query, input, layer.query_bias));
    keys.push_back(times(layer.key, input, layer.key_bias));
    values.push_back(times(layer.value, input, layer.value_bias));
    rotate(shape, t, queries.back());
    rotate(shape, t, keys.back());
  }
  for (std::size_t t = 0; t < x.size(); ++t) {
    add(x[t], times(layer.attention_output, attend(shape, t, queries[t], keys, values)));
    const Vector input = normed(x[t], layer.feed_forward_norm, shape.norm_epsilon);
    Vector hidden = times(layer.gate, input);
    const Vector up = times(layer.up, input);
    for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] *= up[i] / (1 + std::exp(-hidden[i]));
    add(x[t], times(layer.down, hidden));
  }
}

}  // namespace

std::vector<std::vector<double>> reference_forward(const ModelShape& shape,
                                                   const engine::ModelWeights& weights,
                                                   const std::vector<engine::TokenId>& tokens) {
  Rows x;
  for (const engine::TokenId token : tokens) {
    x.emplace_back();
    for (int k = 0; k < shape.width; ++k)
      x.back().push_back(element(weights.token_embedding, token, k));
  }
  for (const LayerWeights& layer : weights.layers) run_layer(shape, layer, x);
  for (Vector& row : x)
    row = times(weights.output, normed(row, weights.output_norm, shape.norm_epsilon));
  return x;
}

}  // namespace efimd::test
