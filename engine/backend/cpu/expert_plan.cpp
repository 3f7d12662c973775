#include "engine/backend/cpu/expert_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace efimd::engine::cpu {

void ExpertPlan::route(std::span<const float> logits, int rows) {
  order_.resize(static_cast<std::size_t>(experts_));
  chosen_.resize(static_cast<std::size_t>(rows * used_));
  choices_.resize(chosen_.size());
  for (int row = 0; row < rows; ++row)
    choose(logits.data() + static_cast<std::ptrdiff_t>(row) * experts_, row);
  lay_out(rows);
}

void ExpertPlan::choose(const float* logits, int row) {
  std::iota(order_.begin(), order_.end(), 0);
  // A NaN, as a damaged file gives, counts as less than all numbers: sorting wants an order.
  const auto rank_of = [&](int expert) {
    const bool number = !std::isnan(logits[expert]);
    return std::pair(number, number ? logits[expert] : 0.0F);
  };
  std::partial_sort(order_.begin(), order_.begin() + used_, order_.end(), [&](int a, int b) {
    const auto left = rank_of(a);
    const auto right = rank_of(b);
    return left != right ? left > right : a < b;
  });
  const std::size_t at = static_cast<std::size_t>(row * used_);
  float sum = 0.0F;
  for (int rank = 0; rank < used_; ++rank) {
    const int expert = order_[static_cast<std::size_t>(rank)];
    const float weight = std::exp(logits[expert] - logits[order_[0]]);
    chosen_[at + static_cast<std::size_t>(rank)] = expert;
    choices_[at + static_cast<std::size_t>(rank)].weight = weight;
    sum += weight;
  }
  for (int rank = 0; rank < used_; ++rank)
    choices_[at + static_cast<std::size_t>(rank)].weight /= sum;
}

void ExpertPlan::lay_out(int rows) {
  std::vector<int> next(static_cast<std::size_t>(experts_) + 1, 0);
  for (const int expert : chosen_) ++next[static_cast<std::size_t>(expert) + 1];
  shares_.clear();
  for (int expert = 0; expert < experts_; ++expert) {
    const auto at = static_cast<std::size_t>(expert);
    const int count = next[at + 1];
    next[at + 1] += next[at];
    if (count > 0) shares_.push_back({expert, next[at], count});
  }
  rows_.resize(chosen_.size());
  for (int row = 0; row < rows; ++row) {
    for (int rank = 0; rank < used_; ++rank) {
      const auto at = static_cast<std::size_t>(row * used_ + rank);
      const int slot = next[static_cast<std::size_t>(chosen_[at])]++;
      choices_[at].slot = slot;
      rows_[static_cast<std::size_t>(slot)] = row;
    }
  }
}

}  // namespace efimd::engine::cpu
