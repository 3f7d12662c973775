#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// A buffer with these values, which the device and the host reach.
template <class T>
engine::gpu::Range put(engine::gpu::GpuDevice& device, const std::vector<T>& values) {
  const auto buffer =
      device.allocate(values.size() * sizeof(T) + 16, engine::gpu::Memory::kHostReads);
  REQUIRE(buffer);
  std::memcpy(device.mapped(*buffer).data(), values.data(), values.size() * sizeof(T));
  return {*buffer, 0, values.size() * sizeof(T) + 16};
}

template <class T>
std::vector<T> get(engine::gpu::GpuDevice& device, const engine::gpu::Range& range,
                   std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), device.mapped(range.buffer).data(), count * sizeof(T));
  return values;
}

inline std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace efimd::test
