#pragma once

#include <vector>

#include "engine/model/model.h"
#include "engine/types.h"

namespace efimd::test {

/// Logits of every position of one sequence, [T][V], in f64 with plain loops and nothing shared
/// with the device.
std::vector<std::vector<double>> reference_forward(const engine::ModelShape& shape,
                                                   const engine::ModelWeights& weights,
                                                   const std::vector<engine::TokenId>& tokens);

}  // namespace efimd::test
