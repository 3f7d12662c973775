#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/model.h"

namespace efimd::engine::cpu {

/// The bias of keys, rotated to every position, for attention over keys that are kept without it.
///
/// RoPE is linear: R(c) (W x + b) = R(c) W x + R(c) b. Element e of the second part is along[e] *
/// cosine(c, pair of e) + across[e] * sine(c, pair of e). The turns are shared by all layers and
/// heads: 4 * rope_width bytes a position.
///
/// Thread: engine; reading from any between two calls of prepare().
class KeyBias {
 public:
  /// `biases`: of each layer [Hk*E]; empty ones have none.
  KeyBias(const ModelShape& shape, std::span<const float> rope_factors,
          const std::vector<std::span<const float>>& biases);

  bool has(int layer) const { return !along_[static_cast<std::size_t>(layer)].empty(); }
  /// Positions before `end` will be read.
  void prepare(int end);

  /// [E] of a layer and KV head.
  const float* along(int layer, int kv_head) const { return of(along_, layer, kv_head); }
  const float* across(int layer, int kv_head) const { return of(across_, layer, kv_head); }
  /// Of the page of tokens that begins at position page * P: cosines [pairs][P], then sines.
  const float* turns(int page) const {
    return turns_.data() + static_cast<std::size_t>(page) * page_floats();
  }
  int pairs() const { return pairs_; }

 private:
  using Layers = std::vector<std::vector<float>>;
  const float* of(const Layers& layers, int layer, int kv_head) const {
    return layers[static_cast<std::size_t>(layer)].data() +
           static_cast<std::size_t>(kv_head) * static_cast<std::size_t>(head_width_);
  }
  void add_layer(const ModelShape& shape, std::span<const float> bias);
  std::size_t page_floats() const {
    return 2 * static_cast<std::size_t>(pairs_) * static_cast<std::size_t>(kPageTokens);
  }

  int head_width_;
  int pairs_;  ///< of a head
  double magnitude_;
  bool any_ = false;
  std::vector<double> frequencies_;
  Layers along_, across_;     ///< [L] of [Hk][E]
  std::vector<float> turns_;  ///< [pages][2][pairs][P]
};

}  // namespace efimd::engine::cpu
