#pragma once

#include <span>
#include <vector>

#include "engine/model/model.h"

namespace efimd::engine::cpu {

/// The rotations of the rows of one step: angle = position * rope_scale * rope_base^(-2i /
/// rope_width) for pair i, computed in double once per step, used by all layers in f32.
class Rope {
 public:
  explicit Rope(const ModelShape& shape);

  /// Row r stands at positions[r].
  void prepare(std::span<const int> positions);
  /// Rotates one head [E] of row r; elements from rope_width on stay.
  void rotate(int row, float* head) const;

 private:
  const RopePairs pairs_;
  const int half_;                   ///< pairs of a head
  std::vector<double> frequencies_;  ///< [half]
  std::vector<float> turns_;         ///< [rows][2][half]: cosines, then sines
};

}  // namespace efimd::engine::cpu
