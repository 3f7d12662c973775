#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "engine/model/gguf.h"

namespace efimd::test {

/// Every type that matrices may have.
inline constexpr engine::TensorType kWeightTypes[] = {
    engine::TensorType::kF32,  engine::TensorType::kF16,  engine::TensorType::kBF16,
    engine::TensorType::kQ8_0, engine::TensorType::kQ4_0, engine::TensorType::kQ4_1,
    engine::TensorType::kQ5_0, engine::TensorType::kQ5_1, engine::TensorType::kQ4_K,
    engine::TensorType::kQ5_K, engine::TensorType::kQ6_K};

bool is_quantized(engine::TensorType type);

/// A tensor of random bits that mean sane numbers: weights of about +-`scale`, every bit of every
/// block in use. `offset`: bytes between a 64-byte boundary and the data.
engine::TensorView random_tensor(std::deque<std::vector<std::byte>>& storage,
                                 engine::TensorType type, std::int64_t rows, std::int64_t cols,
                                 float scale, std::mt19937& random, std::size_t offset = 0);

/// Element (row, col) of a tensor, in f64, from the layout of its block; shares nothing with what
/// it tests.
double element(const engine::TensorView& tensor, std::int64_t row, std::int64_t col);

}  // namespace efimd::test
