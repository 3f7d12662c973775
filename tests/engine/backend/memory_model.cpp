#include "tests/engine/backend/memory_model.h"

#include <cmath>

#include "engine/backend/cpu/kernels/isa.h"

namespace efimd::test {

using engine::TensorType;
using engine::TensorView;

std::vector<engine::Isa> isas_here() {
  std::vector<engine::Isa> found;
  for (const engine::Isa isa : engine::kIsas)
    if (engine::cpu::runs_here(isa)) found.push_back(isa);
  return found;
}

MemoryModel::MemoryModel(const engine::ModelShape& of, const Options& options) : shape(of) {
  std::mt19937 random(options.seed);
  const auto vector = [&](std::int64_t cols, float scale) {
    return random_tensor(storage, TensorType::kF32, 1, cols, scale, random);
  };
  weights.token_embedding =
      random_tensor(storage, options.type, shape.vocabulary, shape.width, 1, random);
  for (int layer = 0; layer < shape.layers; ++layer)
    weights.layers.push_back(random_layer(options, random));
  weights.output_norm = vector(shape.width, 1.5F);
  if (shape.norm == engine::Norm::kLayer) weights.output_norm_bias = vector(shape.width, 0.5F);
  weights.output = weights.token_embedding;
  if (!options.rope_factors) return;
  weights.rope_factors = vector(shape.rope_width / 2, 1);
  auto* factors = reinterpret_cast<float*>(const_cast<std::byte*>(weights.rope_factors.data));
  for (int i = 0; i < shape.rope_width / 2; ++i) factors[i] = 1 + std::fabs(factors[i]);
}

engine::LayerWeights MemoryModel::random_layer(const Options& options, std::mt19937& random) {
  const int query = shape.heads * shape.head_width;
  const int key = shape.kv_heads * shape.head_width;
  const int experts = std::max(shape.experts, 1);
  const auto matrix = [&](std::int64_t rows, int cols) {
    const float scale =
        std::sqrt(3.0F / static_cast<float>(cols));  // keeps the size of activations
    return random_tensor(storage, options.type, rows, cols, scale, random);
  };
  const auto vector = [&](int cols, bool wanted = true) {
    return wanted ? random_tensor(storage, TensorType::kF32, 1, cols, 1.5F, random) : TensorView{};
  };
  const bool biases = options.biases || options.all_biases;
  const bool layer_norm = shape.norm == engine::Norm::kLayer;
  engine::LayerWeights layer;
  layer.attention_norm = vector(shape.width);
  layer.query = matrix(query, shape.width);
  layer.key = matrix(key, shape.width);
  layer.value = matrix(key, shape.width);
  layer.query_bias = vector(query, biases);
  layer.key_bias = vector(key, biases);
  layer.value_bias = vector(key, biases);
  layer.attention_output = matrix(shape.width, query);
  layer.feed_forward_norm = vector(shape.width);
  if (options.gated) layer.gate = matrix(experts * shape.feed_forward, shape.width);
  layer.up = matrix(experts * shape.feed_forward, shape.width);
  layer.down = matrix(experts * shape.width, shape.feed_forward);
  layer.attention_norm_bias = vector(shape.width, layer_norm);
  layer.feed_forward_norm_bias = vector(shape.width, layer_norm);
  layer.query_norm = vector(shape.head_width, options.head_norms);
  layer.key_norm = vector(shape.head_width, options.head_norms);
  layer.attention_output_bias = vector(shape.width, options.all_biases);
  layer.gate_bias = vector(shape.feed_forward, options.all_biases && options.gated);
  layer.up_bias = vector(shape.feed_forward, options.all_biases);
  layer.down_bias = vector(shape.width, options.all_biases);
  if (shape.experts > 0)
    layer.router = random_tensor(storage, TensorType::kF32, shape.experts, shape.width,
                                 4 / std::sqrt(static_cast<float>(shape.width)), random);
  return layer;
}

engine::ModelShape tiny_shape() {
  engine::ModelShape shape;
  shape.layers = 2;
  shape.width = 96;
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_width = 32;
  shape.feed_forward = 160;
  shape.vocabulary = 100;
  shape.context_tokens = 4096;
  shape.rope_width = 32;
  shape.rope_base = 10000.0F;
  return shape;
}

}  // namespace efimd::test
