#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

#include "engine/backend/cpu/aligned_array.h"
#include "engine/backend/cpu/cpu_weights.h"
#include "engine/backend/cpu/kernels/panels.h"

namespace efimd::test {

/// A matrix with its panels.
class PanelMatrix {
 public:
  explicit PanelMatrix(const engine::TensorView& tensor)
      : mapped(engine::cpu::weights_of(tensor)), both(mapped) {
    const auto count = static_cast<std::size_t>(panel_count(mapped));
    REQUIRE(memory_.reserve(count * panel_bytes(mapped)));
    for (std::size_t panel = 0; panel < count; ++panel)
      write_panel(mapped, static_cast<int>(panel), memory_.data() + panel * panel_bytes(mapped));
    if (count > 0) both.panels = memory_.data();
  }
  /// The matrix without what panels hold: what reads it there finds nothing but zeros.
  engine::cpu::Weights panels_alone(std::vector<unsigned char>& rest) const {
    engine::cpu::Weights weights = both;
    rest.assign(weights.data,
                weights.data + static_cast<std::size_t>(weights.rows) * weights.row_bytes);
    std::fill_n(rest.begin(),
                static_cast<std::size_t>(panel_count(weights) * engine::cpu::kPanelRows) *
                    weights.row_bytes,
                0);
    weights.data = rest.data();
    return weights;
  }

  const engine::cpu::Weights mapped;
  engine::cpu::Weights both;

 private:
  engine::cpu::AlignedArray<unsigned char> memory_;
};

}  // namespace efimd::test
