// Each operation alone on the Vulkan device, at every level, against the scalar specification.
#include <catch2/catch.hpp>

#include "tests/engine/backend/gpu/attention_operations.h"
#include "tests/engine/backend/gpu/kv8_operations.h"
#include "tests/engine/backend/gpu/operations.h"
#include "tests/engine/backend/gpu/vulkan_devices.h"

namespace efimd::test {

TEST_CASE("Vulkan: products of every weight type agree with f64 within rounding, at every level") {
  for (int level = 0; level < 3; ++level) {
    INFO("level " << level);
    if (const auto device = vulkan_device({.level_max = level})) check_products(*device);
  }
}

TEST_CASE("Vulkan: a product is the same bit for bit however tokens are cut, at every level") {
  for (int level = 0; level < 3; ++level) {
    INFO("level " << level);
    if (const auto device = vulkan_device({.level_max = level}))
      check_batch_invariance(*device, LargeTiles::kNo);
  }
}

TEST_CASE("Vulkan: inputs are quantized as the specification says") {
  if (const auto device = vulkan_device()) check_quantize(*device);
}

TEST_CASE("Vulkan: norms and activations come in the forms that are asked for, at every level") {
  for (int level = 0; level < 2; ++level) {
    INFO("level " << level);
    if (const auto device = vulkan_device({.level_max = level})) check_forms(*device);
  }
}

TEST_CASE("Vulkan: KV is rounded to f16 as the specification says") {
  if (const auto device = vulkan_device()) check_halves(*device);
}

TEST_CASE("Vulkan: attention over f16 KV agrees with f64, at every level") {
  for (int level = 0; level < 2; ++level) {
    INFO("level " << level);
    if (const auto device = vulkan_device({.level_max = level})) check_attention_in_halves(*device);
  }
}

TEST_CASE("Vulkan: KV goes to 8 bits as the specification says, at every level") {
  for (int level = 0; level < 2; ++level) {
    INFO("level " << level);
    if (const auto device = vulkan_device({.level_max = level})) check_store_in_8_bits(*device);
  }
}

TEST_CASE("Vulkan: attention over 8-bit KV agrees with f64 and the specification, at every level") {
  for (int level = 0; level < 2; ++level) {
    INFO("level " << level);
    if (const auto device = vulkan_device({.level_max = level})) check_attention_in_8_bits(*device);
  }
}

}  // namespace efimd::test
