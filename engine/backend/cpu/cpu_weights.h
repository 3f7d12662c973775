#pragma once

#include <vector>

#include "base/error.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/model/model.h"

namespace efimd::engine::cpu {

/// Empty bias: an RMS norm.
struct CpuNorm {
  std::vector<float> weight, bias;
};

/// One decoder block as the kernels take it. Empty vectors: the architecture has none.
struct CpuLayer {
  CpuNorm attention_norm, feed_forward_norm;
  std::vector<float> query_bias, key_bias, value_bias;
  std::vector<float> query_norm, key_norm;
  std::vector<float> attention_output_bias, down_bias;  ///< times residual_scale
  std::vector<float> gate_bias, up_bias;
  Weights query, key, value, attention_output;
  Weights router;                       ///< no rows: dense
  std::vector<Weights> gate, up, down;  ///< [experts], one if dense; no gate: act(up)
};

/// A model's weights. Matrices stay in the mapped file. Vectors are copied (a few KiB a layer), so
/// that they are f32 and aligned in any case. Scales that a vector can carry are in it.
struct CpuWeights {
  Weights token_embedding, output;
  CpuNorm output_norm;  ///< times logit_scale
  std::vector<float> rope_factors;
  std::vector<CpuLayer> layers;

  /// All matrices that steps multiply with, in the order of a step.
  std::vector<Weights*> matrices();

  /// Refuses tensors that do not fit `shape`.
  static Result<CpuWeights> from(const ModelShape& shape, const ModelWeights& weights);
};

/// A tensor as the kernels take it.
Weights weights_of(const TensorView& tensor);

/// Row `row` of a matrix as f32 [cols].
void read_row(const Weights& weights, int row, float* out);

}  // namespace efimd::engine::cpu
