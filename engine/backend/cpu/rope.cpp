#include "engine/backend/cpu/rope.h"

#include <cmath>
#include <cstddef>

#include "engine/backend/rope_frequencies.h"

namespace efimd::engine::cpu {

Rope::Rope(const ModelShape& shape, std::span<const float> factors)
    : pairs_(shape.rope_pairs),
      half_(shape.rope_width / 2),
      magnitude_(static_cast<double>(shape.rope_magnitude)),
      frequencies_(rope_frequencies(shape, factors)) {}

void Rope::prepare(std::span<const int> positions) {
  turns_.resize(positions.size() * 2 * static_cast<std::size_t>(half_));
  float* turn = turns_.data();
  for (const int position : positions) {
    for (int i = 0; i < half_; ++i) {
      const double angle = position * frequencies_[static_cast<std::size_t>(i)];
      turn[i] = static_cast<float>(magnitude_ * std::cos(angle));
      turn[half_ + i] = static_cast<float>(magnitude_ * std::sin(angle));
    }
    turn += 2 * half_;
  }
}

void Rope::rotate(int row, float* head) const {
  const float* cosine = turns_.data() + static_cast<std::ptrdiff_t>(row) * 2 * half_;
  const float* sine = cosine + half_;
  // Pair i is (2i, 2i + 1), or (i, i + half).
  const bool adjacent = pairs_ == RopePairs::kAdjacent;
  const int step = adjacent ? 2 : 1;
  float* first = head;
  float* second = head + (adjacent ? 1 : half_);
  for (int i = 0; i < half_; ++i) {
    const float a = first[i * step];
    const float b = second[i * step];
    first[i * step] = a * cosine[i] - b * sine[i];
    second[i * step] = a * sine[i] + b * cosine[i];
  }
}

}  // namespace efimd::engine::cpu
