#include "engine/backend/cpu/cpu_weights.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/unaligned.h"
#include "engine/backend/cpu/kernels/weight_blocks.h"

namespace efimd::engine::cpu {

namespace {

WeightType weight_type(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return WeightType::kF32;
    case TensorType::kF16:
      return WeightType::kF16;
    case TensorType::kBF16:
      return WeightType::kBF16;
    case TensorType::kQ8_0:
      return WeightType::kQ8_0;
    case TensorType::kQ4_0:
      return WeightType::kQ4_0;
    case TensorType::kQ4_1:
      return WeightType::kQ4_1;
    case TensorType::kQ5_0:
      return WeightType::kQ5_0;
    case TensorType::kQ5_1:
      return WeightType::kQ5_1;
    case TensorType::kQ4_K:
      return WeightType::kQ4_K;
    case TensorType::kQ5_K:
      return WeightType::kQ5_K;
    case TensorType::kQ6_K:
      return WeightType::kQ6_K;
  }
  return WeightType::kF32;
}

std::vector<float> vector_of(const TensorView& tensor, float scale = 1) {
  if (!tensor.present()) return {};
  std::vector<float> values(static_cast<std::size_t>(tensor.cols));
  read_row(weights_of(tensor), 0, values.data());
  for (float& value : values) value *= scale;
  return values;
}

CpuNorm norm_of(const TensorView& weight, const TensorView& bias, float scale = 1) {
  return {vector_of(weight, scale), vector_of(bias, scale)};
}

/// The matrices of `rows` rows that lie one below the other: one of a dense block, all experts'.
std::vector<Weights> stacked(const TensorView& tensor, int rows) {
  std::vector<Weights> parts;
  for (std::int64_t first = 0; first < tensor.rows; first += rows)
    parts.push_back(weights_of({tensor.type, tensor.row(first), rows, tensor.cols}));
  return parts;
}

/// Collects the first tensor that has the wrong size.
class Fit {
 public:
  void matrix(const TensorView& tensor, const char* name, std::int64_t rows, std::int64_t cols) {
    if (tensor.rows != rows || tensor.cols != cols || tensor.data == nullptr) note(name, tensor);
  }
  void vector(const TensorView& tensor, const char* name, std::int64_t size) {
    matrix(tensor, name, 1, size);
  }
  void optional(const TensorView& tensor, const char* name, std::int64_t size) {
    if (tensor.present()) vector(tensor, name, size);
  }
  const std::string& misfit() const { return misfit_; }

 private:
  void note(const char* name, const TensorView& tensor) {
    if (!misfit_.empty()) return;
    misfit_ = std::string(name) + " has " + std::to_string(tensor.rows) + " rows of " +
              std::to_string(tensor.cols) + ", which is not the model's shape";
  }
  std::string misfit_;
};

void fit_attention(Fit& fit, const ModelShape& shape, const LayerWeights& layer) {
  const int query = shape.heads * shape.head_width;
  const int key = shape.kv_heads * shape.head_width;
  fit.vector(layer.attention_norm, "attention_norm", shape.width);
  fit.optional(layer.attention_norm_bias, "attention_norm_bias", shape.width);
  fit.matrix(layer.query, "query", query, shape.width);
  fit.matrix(layer.key, "key", key, shape.width);
  fit.matrix(layer.value, "value", key, shape.width);
  fit.optional(layer.query_bias, "query_bias", query);
  fit.optional(layer.key_bias, "key_bias", key);
  fit.optional(layer.value_bias, "value_bias", key);
  fit.optional(layer.query_norm, "query_norm", shape.head_width);
  fit.optional(layer.key_norm, "key_norm", shape.head_width);
  fit.matrix(layer.attention_output, "attention_output", shape.width, query);
  fit.optional(layer.attention_output_bias, "attention_output_bias", shape.width);
}

void fit_feed_forward(Fit& fit, const ModelShape& shape, const LayerWeights& layer) {
  const std::int64_t experts = std::max(shape.experts, 1);
  fit.vector(layer.feed_forward_norm, "feed_forward_norm", shape.width);
  fit.optional(layer.feed_forward_norm_bias, "feed_forward_norm_bias", shape.width);
  if (shape.experts > 0) fit.matrix(layer.router, "router", experts, shape.width);
  if (layer.gate.present())
    fit.matrix(layer.gate, "gate", experts * shape.feed_forward, shape.width);
  fit.matrix(layer.up, "up", experts * shape.feed_forward, shape.width);
  fit.matrix(layer.down, "down", experts * shape.width, shape.feed_forward);
  fit.optional(layer.gate_bias, "gate_bias", shape.feed_forward);
  fit.optional(layer.up_bias, "up_bias", shape.feed_forward);
  fit.optional(layer.down_bias, "down_bias", shape.width);
}

std::string misfit_of(const ModelShape& shape, const ModelWeights& weights) {
  Fit fit;
  fit.matrix(weights.token_embedding, "token_embedding", shape.vocabulary, shape.width);
  fit.matrix(weights.output, "output", shape.vocabulary, shape.width);
  fit.vector(weights.output_norm, "output_norm", shape.width);
  fit.optional(weights.output_norm_bias, "output_norm_bias", shape.width);
  fit.optional(weights.rope_factors, "rope_factors", shape.rope_width / 2);
  for (const LayerWeights& layer : weights.layers) {
    fit_attention(fit, shape, layer);
    fit_feed_forward(fit, shape, layer);
  }
  return fit.misfit();
}

CpuLayer layer_of(const ModelShape& shape, const LayerWeights& layer) {
  return {.attention_norm = norm_of(layer.attention_norm, layer.attention_norm_bias),
          .feed_forward_norm = norm_of(layer.feed_forward_norm, layer.feed_forward_norm_bias),
          .query_bias = vector_of(layer.query_bias),
          .key_bias = vector_of(layer.key_bias),
          .value_bias = vector_of(layer.value_bias),
          .query_norm = vector_of(layer.query_norm),
          .key_norm = vector_of(layer.key_norm),
          .attention_output_bias = vector_of(layer.attention_output_bias, shape.residual_scale),
          .down_bias = vector_of(layer.down_bias, shape.residual_scale),
          .gate_bias = vector_of(layer.gate_bias),
          .up_bias = vector_of(layer.up_bias),
          .query = weights_of(layer.query),
          .key = weights_of(layer.key),
          .value = weights_of(layer.value),
          .attention_output = weights_of(layer.attention_output),
          .router = weights_of(layer.router),
          .gate = stacked(layer.gate, shape.feed_forward),
          .up = stacked(layer.up, shape.feed_forward),
          .down = stacked(layer.down, shape.width)};
}

}  // namespace

Weights weights_of(const TensorView& tensor) {
  return {weight_type(tensor.type), reinterpret_cast<const unsigned char*>(tensor.data),
          tensor.row_bytes(), static_cast<int>(tensor.rows), static_cast<int>(tensor.cols)};
}

Result<CpuWeights> CpuWeights::from(const ModelShape& shape, const ModelWeights& weights) {
  if (weights.layers.size() != static_cast<std::size_t>(shape.layers))
    return fail(Fault::kBadInput, "the model has " + std::to_string(weights.layers.size()) +
                                      " layers of " + std::to_string(shape.layers));
  if (std::string misfit = misfit_of(shape, weights); !misfit.empty())
    return fail(Fault::kBadInput, std::move(misfit));
  CpuWeights result{weights_of(weights.token_embedding),
                    weights_of(weights.output),
                    norm_of(weights.output_norm, weights.output_norm_bias, shape.logit_scale),
                    vector_of(weights.rope_factors),
                    {}};
  for (const LayerWeights& layer : weights.layers) result.layers.push_back(layer_of(shape, layer));
  return result;
}

std::vector<Weights*> CpuWeights::matrices() {
  std::vector<Weights*> all;
  for (CpuLayer& layer : layers) {
    for (Weights* matrix :
         {&layer.query, &layer.key, &layer.value, &layer.attention_output, &layer.router})
      all.push_back(matrix);
    for (std::vector<Weights>* stack : {&layer.gate, &layer.up, &layer.down})
      for (Weights& matrix : *stack) all.push_back(&matrix);
  }
  all.push_back(&output);
  return all;
}

void read_row(const Weights& weights, int row, float* out) {
  const unsigned char* at = weights.data + static_cast<std::size_t>(row) * weights.row_bytes;
  const int cols = weights.cols;
  switch (weights.type) {
    case WeightType::kF32:
      std::memcpy(out, at, static_cast<std::size_t>(cols) * sizeof *out);
      return;
    case WeightType::kF16:
      for (int k = 0; k < cols; ++k, at += 2) out[k] = half_to_float(read<std::uint16_t>(at));
      return;
    case WeightType::kBF16:
      for (int k = 0; k < cols; ++k, at += 2) out[k] = bfloat_to_float(read<std::uint16_t>(at));
      return;
    default:
      break;
  }
  for (int k = 0; k < cols; k += kRunWeights) {
    const WeightRun run = read_run(weights.type, at, k / kRunWeights);
    for (int i = 0; i < kRunWeights; ++i)
      out[k + i] = run.scale * static_cast<float>(run.quants[i]) - run.minimum;
  }
}

}  // namespace efimd::engine::cpu
