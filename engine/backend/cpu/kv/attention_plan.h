#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/kernels/kernels.h"

namespace efimd::engine::cpu {

/// How one step's attention is cut into tasks, the same for every layer.
///
/// A sequence's KV is cut into ranges of kRangeTokens. A task is one range for one KV head and a
/// few rows. Each (row, head, range) leaves a partial (AttentionTask), and a row's partials are
/// merged in the order of the ranges. The cut depends on positions alone, so a row's arithmetic
/// does not change with the rest of the step. Ranges before a row's window have neither task nor
/// partial.
class AttentionPlan {
 public:
  static constexpr int kRangeTokens = 16 * kPageTokens;
  /// Query rows times heads that share one reading of KV; fewer make more tasks, and their scores
  /// stay in L1.
  static constexpr int kTaskQueries = 32;

  struct Heads {
    int kv_heads;
    int group;       ///< G
    int head_width;  ///< E
    int value_width;
    int window = 0;  ///< tokens that a row sees, itself included; 0: all
  };
  explicit AttentionPlan(const Heads& heads) : heads_(heads) {}

  void prepare(const Step& step);

  /// Floats that the partials of the step take.
  std::size_t partial_floats() const { return partial_floats_; }
  int tasks() const { return static_cast<int>(tasks_.size()); }
  int rows() const { return static_cast<int>(rows_.size()); }
  /// Task `index` over q [T][H][E]; the caller says where its K and V are.
  AttentionTask task(int index, const float* q, float* partials) const;
  int kv_head(int index) const { return tasks_[static_cast<std::size_t>(index)].kv_head; }
  /// The position of the first token of a task's range.
  int range_begin(int index) const {
    return tasks_[static_cast<std::size_t>(index)].range * kRangeTokens;
  }
  /// out [H][E] of row `row` from its partials: sum of exp(m_i - m) * acc_i over sum of
  /// exp(m_i - m) * l_i.
  void merge(int row, const float* partials, float* out) const;

 private:
  struct Task {
    int row;  ///< first
    int rows;
    int kv_head;
    int range;
    int tokens;
    int position;
    const PageIndex* page_table;
  };
  struct Row {
    std::size_t partial;  ///< of head 0, range 0
    int first_range;      ///< that this row sees
    int ranges;           ///< one past the last that it sees
    int range_slots;      ///< partials from head to head
  };
  void add_sequence(const StepSequence& sequence);
  int window() const { return heads_.window > 0 ? heads_.window : kNoWindow; }
  /// The first range that the row at `position` sees.
  int first_range(int position) const;
  int heads() const { return heads_.kv_heads * heads_.group; }
  std::size_t partial_size() const;

  const Heads heads_;
  std::vector<Task> tasks_;
  std::vector<Row> rows_;
  std::size_t partial_floats_ = 0;
};

}  // namespace efimd::engine::cpu
