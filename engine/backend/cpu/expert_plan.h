#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace efimd::engine::cpu {

/// The experts that evaluate the rows of one step, in one layer.
///
/// A row goes to the `used` experts with the largest router logits. The lower index goes first
/// among equals, and NaN last. Their weights are the softmax over these logits. A slot is one (row,
/// expert). Slots lie expert by expert, so that an expert's weights are read once for all of its
/// rows. A row's choice, weights and the order of its sum depend on its own logits alone.
class ExpertPlan {
 public:
  ExpertPlan(int experts, int used) : experts_(experts), used_(used) {}

  /// The slots of one expert: first .. first + count - 1.
  struct Share {
    int expert;
    int first;
    int count;
  };

  /// logits [rows][experts].
  void route(std::span<const float> logits, int rows);

  int slots() const { return static_cast<int>(rows_.size()); }
  /// Experts that have rows, in their order.
  std::span<const Share> shares() const { return shares_; }
  int row_of(int slot) const { return rows_[static_cast<std::size_t>(slot)]; }

  /// One of a row's experts: the place of its result and its weight.
  struct Choice {
    int slot;
    float weight;
  };
  /// Of row `row`, [used], the likeliest expert first.
  std::span<const Choice> choices(int row) const {
    return std::span(choices_).subspan(static_cast<std::size_t>(row * used_),
                                       static_cast<std::size_t>(used_));
  }

 private:
  void choose(const float* logits, int row);
  void lay_out(int rows);

  const int experts_;
  const int used_;
  std::vector<int> order_;       ///< experts of the row at hand, likeliest first
  std::vector<int> chosen_;      ///< [rows][used] experts
  std::vector<Choice> choices_;  ///< [rows][used]
  std::vector<Share> shares_;
  std::vector<int> rows_;  ///< [slots]
};

}  // namespace efimd::engine::cpu
