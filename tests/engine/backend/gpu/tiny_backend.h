#pragma once

#include <memory>

#include "engine/backend/gpu/gpu_backend.h"
#include "tests/engine/backend/varieties.h"

namespace efimd::test {

inline const MemoryModel& tiny_model() {
  static const MemoryModel model(varieties()[1].shape, varieties()[1].options);
  return model;
}

inline Result<std::unique_ptr<engine::Backend>> tiny_backend(
    std::unique_ptr<engine::gpu::GpuDevice> device) {
  return engine::gpu::make_gpu_backend(std::move(device), tiny_model().shape, tiny_model().weights,
                                       {64, 64});
}

}  // namespace efimd::test
