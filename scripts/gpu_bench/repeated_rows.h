#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/gguf.h"

/// A tensor of random rows that repeat after 1 MiB. Making all rows of a 7B model random takes
/// minutes, and a device is as fast with these. Not zeros, for power, and with it the clock,
/// depends on the bits.
efimd::engine::TensorView repeated_tensor(std::deque<std::vector<std::byte>>& storage,
                                          efimd::engine::TensorType type, std::int64_t rows,
                                          std::int64_t cols, float scale, std::mt19937& random);

/// The rows that such a tensor repeats, packed.
std::vector<std::uint32_t> packed_rows(const efimd::engine::TensorView& tensor);
