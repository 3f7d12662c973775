#pragma once

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "engine/backend/gpu/gpu_device.h"

namespace efimd::test {

/// A buffer with these values, which the device writes and the host reads.
template <class T>
engine::gpu::Range put(engine::gpu::GpuDevice& device, const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  const auto staging = device.allocate(bytes + 16, engine::gpu::Memory::kHostWrites);
  const auto buffer = device.allocate(bytes + 16, engine::gpu::Memory::kHostReads);
  REQUIRE(staging);
  REQUIRE(buffer);
  std::memcpy(device.mapped(*staging).data(), values.data(), bytes);
  engine::gpu::Operation copy;
  copy.operands[0] = {*staging, 0, bytes + 16};
  copy.operands[1] = {*buffer, 0, bytes + 16};
  REQUIRE(device.run({&copy, 1}));
  return {*buffer, 0, bytes + 16};
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
