#pragma once

#include <vector>

#include "base/error.h"
#include "engine/backend/cpu/kernels.h"
#include "engine/model/model.h"

namespace efimd::engine::cpu {

/// One decoder block as the kernels take it. Empty biases: none.
struct CpuLayer {
  std::vector<float> attention_norm, feed_forward_norm;
  std::vector<float> query_bias, key_bias, value_bias;
  Weights query, key, value, attention_output;
  Weights gate, up, down;
};

/// A model's weights: matrices where they are mapped, vectors copied (a few KiB a layer), so that
/// they are f32 and aligned whatever the file holds.
struct CpuWeights {
  Weights token_embedding, output;
  std::vector<float> output_norm;
  std::vector<CpuLayer> layers;

  /// Refuses tensors that do not fit `shape`.
  static Result<CpuWeights> from(const ModelShape& shape, const ModelWeights& weights);
};

/// A tensor as the kernels take it.
Weights weights_of(const TensorView& tensor);

/// Row `row` of a matrix as f32 [cols].
void read_row(const Weights& weights, int row, float* out);

}  // namespace efimd::engine::cpu
