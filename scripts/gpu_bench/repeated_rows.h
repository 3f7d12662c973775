#pragma once

#include <cstddef>
#include <deque>
#include <random>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/gguf.h"

/// A tensor of which about 1 MiB of random rows is in memory; the others are these over and over. Only the pack_row() of
/// this benchmark may read it.
efimd::engine::TensorView repeated_tensor(std::deque<std::vector<std::byte>>& storage,
                                          efimd::engine::TensorType type, std::int64_t rows,
                                          std::int64_t cols, float scale, std::mt19937& random);

/// The rows that such a tensor repeats, packed.
const std::vector<std::uint32_t>& packed_rows(const efimd::engine::TensorView& tensor);
