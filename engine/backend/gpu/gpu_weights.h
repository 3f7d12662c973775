#pragma once

#include <memory>
#include <vector>

#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

/// A matrix on the device, in parts of whole rows where one operand cannot hold it. No parts: the architecture has
/// none.
struct GpuMatrix {
  kernels::Packed type = kernels::Packed::kF32;
  kernels::RowLayout layout = {};
  int cols = 0;
  struct Part {
    Range range;
    int first;
    int rows;
  };
  std::vector<Part> parts;
  bool present() const { return !parts.empty(); }
};

/// An f32 vector on the device; without a buffer there is none.
struct GpuNorm {
  Range weight, bias;
};

struct GpuLayer {
  GpuNorm attention_norm, feed_forward_norm;
  Range query_bias, key_bias, value_bias, query_norm, key_norm;
  Range attention_output_bias, gate_bias, up_bias, down_bias;
  GpuMatrix query, key, value, attention_output, router, gate, up, down;
};

/// A model's weights in the memory of a device, packed. Vectors lie together in one buffer.
struct GpuWeights {
  GpuMatrix token_embedding, output;
  GpuNorm output_norm;
  std::vector<GpuLayer> layers;
  std::vector<float> rope_factors;

  /// Bytes that upload() will take of the device.
  static std::size_t bytes(const ModelWeights& weights);
  /// Refuses tensors that do not fit `shape`, and experts that no operand of the device can hold.
  static Result<GpuWeights> upload(GpuDevice& device, const ModelShape& shape,
                                   const ModelWeights& weights);
};

}  // namespace efimd::engine::gpu
