#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "engine/model/model.h"
#include "tests/engine/backend/weight_values.h"

namespace efimd::test {

/// The instruction sets that this processor runs, scalar first.
std::vector<engine::Isa> isas_here();

/// A model without a file: any shape, random weights. Layer norms bring their biases.
struct MemoryModel {
  struct Options {
    engine::TensorType type = engine::TensorType::kF32;
    bool biases = false;  ///< of Q, K and V
    std::uint32_t seed = 1;
    bool all_biases = false;
    bool gated = true;
    bool head_norms = false;
    bool rope_factors = false;
  };
  MemoryModel(const engine::ModelShape& shape, const Options& options);
  MemoryModel(const MemoryModel&) = delete;
  MemoryModel& operator=(const MemoryModel&) = delete;

  engine::ModelShape shape;
  engine::ModelWeights weights;
  std::deque<std::vector<std::byte>> storage;

 private:
  engine::LayerWeights random_layer(const Options& options, std::mt19937& random);
};

/// Two layers, two KV heads of two query heads, widths that are multiples of 32.
engine::ModelShape tiny_shape();

}  // namespace efimd::test
