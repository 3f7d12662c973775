#pragma once

#include <span>
#include <vector>

#include "engine/model/model.h"

namespace efimd::engine {

/// Radians per position of each pair of a head, [rope_width / 2], in f64. Every device takes its
/// angles from here, so that all scale alike.
///
///   base^(-2i / rope_width) / factor(i), then
///   linear: * rope_scale;  YaRN: * (rope_scale where the ramp is 0, 1 where it is 1)
///
/// `factors`: ModelWeights::rope_factors as numbers, empty for none.
std::vector<double> rope_frequencies(const ModelShape& shape, std::span<const float> factors);

}  // namespace efimd::engine
