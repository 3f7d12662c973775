#pragma once

#include <span>
#include <vector>

#include "engine/model/model.h"

namespace efimd::engine::cpu {

/// The rotations of the rows of one step: angle = position * rope_frequencies()[i] for pair i. They
/// are computed in double once per step, and all layers use them in f32.
class Rope {
 public:
  Rope(const ModelShape& shape, std::span<const float> factors);

  /// Row r stands at positions[r].
  void prepare(std::span<const int> positions);
  /// Rotates one head [E] of row r and multiplies by rope_magnitude; elements from rope_width on
  /// stay.
  void rotate(int row, float* head) const;

 private:
  const RopePairs pairs_;
  const int half_;                         ///< pairs of a head
  const double magnitude_;                 ///< of a rotation
  const std::vector<double> frequencies_;  ///< [half]
  std::vector<float> turns_;               ///< [rows][2][half]: cosines, then sines
};

}  // namespace efimd::engine::cpu
