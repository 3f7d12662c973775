#include "tests/engine/backend/memory_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "engine/backend/cpu/half.h"
#include "engine/backend/cpu/isa.h"

namespace efimd::test {

using engine::TensorType;
using engine::TensorView;

namespace {

constexpr std::size_t kAlignment = 64;

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// One row of `cols` weights.
void fill_row(std::byte* at, TensorType type, std::int64_t cols, float scale,
              std::mt19937& random) {
  std::uniform_real_distribution<float> weight(-scale, scale);
  switch (type) {
    case TensorType::kF32:
      for (std::int64_t k = 0; k < cols; ++k) put(at + 4 * k, weight(random));
      return;
    case TensorType::kF16:
      for (std::int64_t k = 0; k < cols; ++k)
        put(at + 2 * k, engine::cpu::float_to_half(weight(random)));
      return;
    case TensorType::kBF16:
      for (std::int64_t k = 0; k < cols; ++k)
        put(at + 2 * k,
            static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weight(random)) >> 16U));
      return;
    case TensorType::kQ8_0:
      break;
  }
  std::uniform_real_distribution<float> largest(0.5F * scale, scale);
  for (std::int64_t k = 0; k < cols; k += 32, at += 34) {
    put(at, engine::cpu::float_to_half(largest(random) / 127));
    for (int i = 0; i < 32; i += 4) put(at + 2 + i, static_cast<std::uint32_t>(random()));
  }
}

}  // namespace

std::vector<engine::Isa> isas_here() {
  std::vector<engine::Isa> found;
  for (const engine::Isa isa : {engine::Isa::kScalar, engine::Isa::kAvx2, engine::Isa::kAvx512})
    if (engine::cpu::runs_here(isa)) found.push_back(isa);
  return found;
}

TensorView random_tensor(std::deque<std::vector<std::byte>>& storage, TensorType type,
                         std::int64_t rows, std::int64_t cols, float scale, std::mt19937& random,
                         std::size_t offset) {
  TensorView tensor{type, nullptr, rows, cols};
  const std::size_t bytes = static_cast<std::size_t>(rows) * tensor.row_bytes();
  std::vector<std::byte>& memory = storage.emplace_back(bytes + 2 * kAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  std::byte* data = memory.data() + (kAlignment - address % kAlignment) + offset;
  tensor.data = data;
  for (std::int64_t row = 0; row < rows; ++row)
    fill_row(data + static_cast<std::size_t>(row) * tensor.row_bytes(), type, cols, scale, random);
  return tensor;
}

double element(const TensorView& tensor, std::int64_t row, std::int64_t col) {
  const std::byte* at = tensor.row(row);
  switch (tensor.type) {
    case TensorType::kF32:
      return get<float>(at + 4 * col);
    case TensorType::kF16:
      return engine::cpu::half_to_float(get<std::uint16_t>(at + 2 * col));
    case TensorType::kBF16:
      return engine::cpu::bfloat_to_float(get<std::uint16_t>(at + 2 * col));
    case TensorType::kQ8_0:
      break;
  }
  const std::byte* block = at + col / 32 * 34;
  return static_cast<double>(engine::cpu::half_to_float(get<std::uint16_t>(block))) *
         get<std::int8_t>(block + 2 + col % 32);
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
