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

/// A model without a file: any shape, random weights.
struct MemoryModel {
  struct Options {
    engine::TensorType type = engine::TensorType::kF32;
    bool biases = false;
    std::uint32_t seed = 1;
  };
  MemoryModel(const engine::ModelShape& shape, const Options& options);
  MemoryModel(const MemoryModel&) = delete;
  MemoryModel& operator=(const MemoryModel&) = delete;

  engine::ModelShape shape;
  engine::ModelWeights weights;
  std::deque<std::vector<std::byte>> storage;
};

/// Two layers, two KV heads of two query heads, widths that are multiples of 32.
engine::ModelShape tiny_shape();

}  // namespace efimd::test
