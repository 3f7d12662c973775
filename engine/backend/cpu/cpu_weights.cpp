#include "engine/backend/cpu/cpu_weights.h"

#include <cstring>
#include <string>

#include "engine/backend/cpu/half.h"
#include "engine/backend/cpu/weight_blocks.h"

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

std::vector<float> vector_of(const TensorView& tensor) {
  if (!tensor.present()) return {};
  std::vector<float> values(static_cast<std::size_t>(tensor.cols));
  read_row(weights_of(tensor), 0, values.data());
  return values;
}

/// Collects the first tensor that has the wrong size.
class Fit {
 public:
  void matrix(const TensorView& tensor, const char* name, int rows, int cols) {
    if (tensor.rows != rows || tensor.cols != cols || tensor.data == nullptr) note(name, tensor);
  }
  void vector(const TensorView& tensor, const char* name, int size) {
    matrix(tensor, name, 1, size);
  }
  void bias(const TensorView& tensor, const char* name, int size) {
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

std::string misfit_of(const ModelShape& shape, const ModelWeights& weights) {
  Fit fit;
  const int query = shape.heads * shape.head_width;
  const int key = shape.kv_heads * shape.head_width;
  fit.matrix(weights.token_embedding, "token_embedding", shape.vocabulary, shape.width);
  fit.matrix(weights.output, "output", shape.vocabulary, shape.width);
  fit.vector(weights.output_norm, "output_norm", shape.width);
  for (const LayerWeights& layer : weights.layers) {
    fit.vector(layer.attention_norm, "attention_norm", shape.width);
    fit.matrix(layer.query, "query", query, shape.width);
    fit.matrix(layer.key, "key", key, shape.width);
    fit.matrix(layer.value, "value", key, shape.width);
    fit.bias(layer.query_bias, "query_bias", query);
    fit.bias(layer.key_bias, "key_bias", key);
    fit.bias(layer.value_bias, "value_bias", key);
    fit.matrix(layer.attention_output, "attention_output", shape.width, query);
    fit.vector(layer.feed_forward_norm, "feed_forward_norm", shape.width);
    fit.matrix(layer.gate, "gate", shape.feed_forward, shape.width);
    fit.matrix(layer.up, "up", shape.feed_forward, shape.width);
    fit.matrix(layer.down, "down", shape.width, shape.feed_forward);
  }
  return fit.misfit();
}

CpuLayer layer_of(const LayerWeights& layer) {
  return {vector_of(layer.attention_norm),
          vector_of(layer.feed_forward_norm),
          vector_of(layer.query_bias),
          vector_of(layer.key_bias),
          vector_of(layer.value_bias),
          weights_of(layer.query),
          weights_of(layer.key),
          weights_of(layer.value),
          weights_of(layer.attention_output),
          weights_of(layer.gate),
          weights_of(layer.up),
          weights_of(layer.down)};
}

template <class T>
T read(const unsigned char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
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
                    vector_of(weights.output_norm),
                    {}};
  for (const LayerWeights& layer : weights.layers) result.layers.push_back(layer_of(layer));
  return result;
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
