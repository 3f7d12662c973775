#include "tests/engine/backend/memory_model.h"

#include <cmath>

#include "engine/backend/cpu/isa.h"

namespace efimd::test {

using engine::TensorType;
using engine::TensorView;

std::vector<engine::Isa> isas_here() {
  std::vector<engine::Isa> found;
  for (const engine::Isa isa : {engine::Isa::kScalar, engine::Isa::kAvx2, engine::Isa::kAvx512})
    if (engine::cpu::runs_here(isa)) found.push_back(isa);
  return found;
}

MemoryModel::MemoryModel(const engine::ModelShape& of, const Options& options) : shape(of) {
  std::mt19937 random(options.seed);
  const int query = shape.heads * shape.head_width;
  const int key = shape.kv_heads * shape.head_width;
  const auto matrix = [&](int rows, int cols) {
    const float scale =
        std::sqrt(3.0F / static_cast<float>(cols));  // keeps the size of activations
    return random_tensor(storage, options.type, rows, cols, scale, random);
  };
  const auto vector = [&](int cols) {
    return random_tensor(storage, TensorType::kF32, 1, cols, 1.5F, random);
  };
  const auto bias = [&](int cols) { return options.biases ? vector(cols) : TensorView{}; };
  weights.token_embedding =
      random_tensor(storage, options.type, shape.vocabulary, shape.width, 1, random);
  for (int layer = 0; layer < shape.layers; ++layer) {
    weights.layers.push_back(
        {vector(shape.width), matrix(query, shape.width), matrix(key, shape.width),
         matrix(key, shape.width), bias(query), bias(key), bias(key), matrix(shape.width, query),
         vector(shape.width), matrix(shape.feed_forward, shape.width),
         matrix(shape.feed_forward, shape.width), matrix(shape.width, shape.feed_forward)});
  }
  weights.output_norm = vector(shape.width);
  weights.output = weights.token_embedding;
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
