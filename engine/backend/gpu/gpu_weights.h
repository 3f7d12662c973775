#pragma once

#include <memory>
#include <vector>

#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/gpu/gpu_device.h"
#include "engine/model/model.h"
#include "kernels/sizes.h"

namespace efimd::engine::gpu {

/// A matrix on the device, or several, one below the other, that are multiplied with the same rows.
/// It has a part for each type, and more if one operand cannot hold it. Stacked experts are parts
/// of their own. No parts: the architecture has none.
struct GpuMatrix {
  struct Part {
    Range range;
    kernels::Packed type;
    bool halves;  ///< multiplied with inputs of its type
    kernels::RowLayout layout;
    int first;  ///< row of the product
    int rows;   ///< of all experts
  };
  int cols = 0;
  int rows = 0;  ///< of the product
  std::vector<Part> parts;
  bool present() const { return !parts.empty(); }
  /// The form of input that its products read.
  kernels::Forms inputs() const;
};

/// An f32 vector on the device; without a buffer there is none.
struct GpuNorm {
  Range weight, bias;
};

struct GpuLayer {
  GpuNorm attention_norm, feed_forward_norm;
  Range qkv_bias, query_norm, key_norm;
  Range key_bias;  ///< only if attention adds it; then qkv_bias has zeros
  Range attention_output_bias, gate_up_bias, down_bias;
  GpuMatrix qkv;      ///< query, key, value
  GpuMatrix gate_up;  ///< gate, if there is one, then up
  GpuMatrix attention_output, router, down;
  bool gated = false;
};

/// Whether the output matrix, which gives the logits, goes to the device.
enum class WithOutput { kNo, kYes };

/// A model's weights in the memory of a device, packed. Vectors lie together in one buffer.
struct GpuWeights {
  GpuMatrix token_embedding, output;
  GpuNorm output_norm;
  std::vector<GpuLayer> layers;
  std::vector<float> rope_factors;

  /// Bytes that upload() will take of the device.
  static std::size_t bytes(const ModelWeights& weights, WithOutput with_output);
  /// Refuses tensors that do not fit `shape`, and experts that no operand of the device can hold. With
  /// `bias_of_keys_apart`, keys get no bias if it can be separated from them, that is, if no norm
  /// comes between.
  static Result<GpuWeights> upload(GpuDevice& device, const ModelShape& shape,
                                   const ModelWeights& weights, bool bias_of_keys_apart,
                                   WithOutput with_output);
};

}  // namespace efimd::engine::gpu
