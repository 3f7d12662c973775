#include "engine/backend/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

namespace efimd::engine {
namespace {

/// The pair, as a real number, that turns `turns` times over the original context.
double pair_that_turns(const ModelShape& shape, double turns) {
  const double positions_per_radian =
      shape.yarn.original_context_tokens / (turns * 2 * std::numbers::pi);
  return shape.rope_width * std::log(positions_per_radian) /
         (2 * std::log(static_cast<double>(shape.rope_base)));
}

/// How much of its own frequency pair `pair` keeps: 1 for fast pairs, 0 for slow ones.
double kept_by_yarn(const ModelShape& shape, int pair) {
  const double first = std::max(0.0, std::floor(pair_that_turns(shape, shape.yarn.turns_fast)));
  const double last =
      std::min(shape.rope_width - 1.0, std::ceil(pair_that_turns(shape, shape.yarn.turns_slow)));
  const double along = (pair - first) / std::max(0.001, last - first);
  return shape.yarn.extrapolation * (1 - std::clamp(along, 0.0, 1.0));
}

}  // namespace

std::vector<double> rope_frequencies(const ModelShape& shape, std::span<const float> factors) {
  std::vector<double> frequencies;
  for (int pair = 0; pair < shape.rope_width / 2; ++pair) {
    double frequency =
        std::pow(static_cast<double>(shape.rope_base), -2.0 * pair / shape.rope_width);
    if (!factors.empty()) frequency /= static_cast<double>(factors[static_cast<std::size_t>(pair)]);
    const double kept = shape.yarn.extrapolation == 0 ? 0 : kept_by_yarn(shape, pair);
    frequencies.push_back(frequency * (static_cast<double>(shape.rope_scale) * (1 - kept) + kept));
  }
  return frequencies;
}

}  // namespace efimd::engine
