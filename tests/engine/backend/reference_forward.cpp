#include "tests/engine/backend/reference_forward.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <unordered_map>

#include "tests/engine/backend/memory_model.h"

namespace efimd::test {
namespace {

using engine::LayerWeights;
using engine::ModelShape;
using engine::TensorView;
using Vector = std::vector<double>;
using Rows = std::vector<Vector>;

/// Products, for which each matrix is decoded once: reading an element takes far longer than
/// multiplying by it, above all under sanitizers.
class Matrices {
 public:
  Vector times(const TensorView& matrix, const Vector& x, const TensorView& bias = {}) {
    const Vector& elements = decoded(matrix);
    Vector out;
    for (std::int64_t n = 0; n < matrix.rows; ++n) {
      const auto row = elements.begin() + static_cast<std::ptrdiff_t>(n * matrix.cols);
      out.push_back(
          std::inner_product(x.begin(), x.end(), row, bias.present() ? element(bias, 0, n) : 0));
    }
    return out;
  }

 private:
  const Vector& decoded(const TensorView& matrix) {
    Vector& elements = of_[matrix.data];
    if (elements.empty())
      for (std::int64_t n = 0; n < matrix.rows; ++n)
        for (std::int64_t k = 0; k < matrix.cols; ++k) elements.push_back(element(matrix, n, k));
    return elements;
  }

  std::unordered_map<const std::byte*, Vector> of_;
};

/// RMS norm; with a bias layer norm.
Vector normed(Vector x, const TensorView& weight, double epsilon, const TensorView& bias = {}) {
  const auto width = static_cast<double>(x.size());
  if (bias.present()) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / width;
    for (double& value : x) value -= mean;
  }
  const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
  const double size = std::sqrt(squares / width + epsilon);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    x[i] = x[i] / size * element(weight, 0, at) + (bias.present() ? element(bias, 0, at) : 0);
  }
  return x;
}

void norm_heads(Vector& heads, const TensorView& weight, double epsilon) {
  const auto width = static_cast<std::ptrdiff_t>(weight.cols);
  if (!weight.present()) return;
  for (auto head = heads.begin(); head != heads.end(); head += width)
    std::ranges::copy(normed(Vector(head, head + width), weight, epsilon), head);
}

double activated(engine::Activation activation, double x) {
  if (activation == engine::Activation::kSilu) return x / (1 + std::exp(-x));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

void add(Vector& x, const Vector& y, double scale) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += scale * y[i];
}

/// YaRN is not here: rope_frequencies has tests of its own.
void rotate(const ModelShape& shape, const TensorView& factors, std::size_t position,
            Vector& heads) {
  const auto width = static_cast<std::size_t>(shape.head_width);
  const auto half = static_cast<std::size_t>(shape.rope_width) / 2;
  const bool halves = shape.rope_pairs == engine::RopePairs::kHalves;
  for (std::size_t head = 0; head < heads.size(); head += width) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(position) * shape.rope_scale *
          std::pow(shape.rope_base, -2.0 * static_cast<double>(i) / shape.rope_width) /
          (factors.present() ? element(factors, 0, static_cast<std::int64_t>(i)) : 1);
      double& a = heads[head + (halves ? i : 2 * i)];
      double& b = heads[head + (halves ? i + half : 2 * i + 1)];
      const double turned = a * std::cos(angle) - b * std::sin(angle);
      b = a * std::sin(angle) + b * std::cos(angle);
      a = turned;
    }
  }
}

/// Attention of the row at `position` over rows 0 .. position, or the last ones of the window.
Vector attend(const ModelShape& shape, std::size_t position, const Vector& q, const Rows& keys,
              const Rows& values) {
  const auto width = static_cast<std::size_t>(shape.head_width);
  const auto group = static_cast<std::size_t>(shape.heads / shape.kv_heads);
  Vector out(q.size());
  const auto window = static_cast<std::size_t>(shape.attention_window);
  const std::size_t first = window > 0 && position >= window ? position + 1 - window : 0;
  for (std::size_t head = 0; head < static_cast<std::size_t>(shape.heads); ++head) {
    const std::size_t kv = head / group * width;
    Vector weights;
    for (std::size_t c = first; c <= position; ++c) {
      double score = 0;
      for (std::size_t e = 0; e < width; ++e) score += q[head * width + e] * keys[c][kv + e];
      weights.push_back(shape.attention_scale != 0 ? score * shape.attention_scale
                                                   : score / std::sqrt(shape.head_width));
    }
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - largest);
    for (std::size_t c = first; c <= position; ++c)
      for (std::size_t e = 0; e < width; ++e)
        out[head * width + e] += weights[c - first] / sum * values[c][kv + e];
  }
  return out;
}

/// Feed-forward through the matrices of one expert (0 where dense).
Vector feed_forward(Matrices& matrices, const ModelShape& shape, const LayerWeights& layer,
                    const Vector& input, std::int64_t expert) {
  const auto part = [&](const TensorView& matrix, std::int64_t rows) {
    return matrix.present() ? TensorView{matrix.type, matrix.row(expert * rows), rows, matrix.cols}
                            : matrix;
  };
  const Vector up = matrices.times(part(layer.up, shape.feed_forward), input, layer.up_bias);
  Vector hidden = up;
  if (layer.gate.present())
    hidden = matrices.times(part(layer.gate, shape.feed_forward), input, layer.gate_bias);
  for (std::size_t i = 0; i < hidden.size(); ++i)
    hidden[i] = activated(shape.activation, hidden[i]) * (layer.gate.present() ? up[i] : 1);
  return matrices.times(part(layer.down, shape.width), hidden, layer.down_bias);
}

Vector mixture(Matrices& matrices, const ModelShape& shape, const LayerWeights& layer,
               const Vector& input) {
  const Vector logits = matrices.times(layer.router, input);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return logits[a] > logits[b]; });
  order.resize(static_cast<std::size_t>(shape.experts_used));
  double sum = 0;
  for (const std::size_t expert : order) sum += std::exp(logits[expert]);
  Vector out(input.size());
  for (const std::size_t expert : order)
    add(out, feed_forward(matrices, shape, layer, input, static_cast<std::int64_t>(expert)),
        std::exp(logits[expert]) / sum);
  return out;
}

void run_layer(Matrices& matrices, const ModelShape& shape, const TensorView& factors,
               const LayerWeights& layer, Rows& x) {
  Rows queries, keys, values;
  const double epsilon = shape.norm_epsilon;
  for (std::size_t t = 0; t < x.size(); ++t) {
    const Vector input = normed(x[t], layer.attention_norm, epsilon, layer.attention_norm_bias);
    queries.push_back(matrices.times(layer.query, input, layer.query_bias));
    keys.push_back(matrices.times(layer.key, input, layer.key_bias));
    values.push_back(matrices.times(layer.value, input, layer.value_bias));
    norm_heads(queries.back(), layer.query_norm, epsilon);
    norm_heads(keys.back(), layer.key_norm, epsilon);
    rotate(shape, factors, t, queries.back());
    rotate(shape, factors, t, keys.back());
  }
  for (std::size_t t = 0; t < x.size(); ++t) {
    add(x[t],
        matrices.times(layer.attention_output, attend(shape, t, queries[t], keys, values),
                       layer.attention_output_bias),
        shape.residual_scale);
    const Vector input =
        normed(x[t], layer.feed_forward_norm, epsilon, layer.feed_forward_norm_bias);
    add(x[t],
        shape.experts > 0 ? mixture(matrices, shape, layer, input)
                          : feed_forward(matrices, shape, layer, input, 0),
        shape.residual_scale);
  }
}

}  // namespace

std::vector<std::vector<double>> reference_forward(const ModelShape& shape,
                                                   const engine::ModelWeights& weights,
                                                   const std::vector<engine::TokenId>& tokens) {
  Matrices matrices;
  Rows x;
  for (const engine::TokenId token : tokens) {
    x.emplace_back();
    for (int k = 0; k < shape.width; ++k)
      x.back().push_back(shape.embedding_scale * element(weights.token_embedding, token, k));
  }
  for (const LayerWeights& layer : weights.layers)
    run_layer(matrices, shape, weights.rope_factors, layer, x);
  for (Vector& row : x) {
    row = matrices.times(weights.output, normed(row, weights.output_norm, shape.norm_epsilon,
                                                weights.output_norm_bias));
    for (double& logit : row) logit *= shape.logit_scale;
  }
  return x;
}

}  // namespace efimd::test
