#include "engine/backend/cpu/kv/attention_plan.h"

#include <algorithm>
#include <cmath>

namespace efimd::engine::cpu {

namespace {

int ranges_of(int tokens) {
  return (tokens + AttentionPlan::kRangeTokens - 1) / AttentionPlan::kRangeTokens;
}

}  // namespace

std::size_t AttentionPlan::partial_size() const {
  return static_cast<std::size_t>(kPartialHead + heads_.value_width);
}

int AttentionPlan::first_range(int position) const {
  return std::max(0, position + 1 - window()) / kRangeTokens;
}

void AttentionPlan::prepare(const Step& step) {
  tasks_.clear();
  rows_.assign(step.tokens.size(), {});
  partial_floats_ = 0;
  for (const StepSequence& sequence : step.sequences) add_sequence(sequence);
}

void AttentionPlan::add_sequence(const StepSequence& sequence) {
  const int slots = ranges_of(sequence.position + sequence.count);
  for (int i = 0; i < sequence.count; ++i) {
    const int position = sequence.position + i;
    rows_[static_cast<std::size_t>(sequence.first + i)] = {partial_floats_, first_range(position),
                                                           ranges_of(position + 1), slots};
    partial_floats_ += static_cast<std::size_t>(heads() * slots) * partial_size();
  }
  const int task_rows = std::max(1, kTaskQueries / heads_.group);
  for (int first = 0; first < sequence.count; first += task_rows) {
    const int rows = std::min(task_rows, sequence.count - first);
    const int visible = sequence.position + first + rows;  // to the last row of the task
    for (int range = first_range(sequence.position + first); range < ranges_of(visible); ++range) {
      const int start = range * kRangeTokens;
      for (int kv_head = 0; kv_head < heads_.kv_heads; ++kv_head) {
        tasks_.push_back(
            {sequence.first + first, rows, kv_head, range, std::min(kRangeTokens, visible - start),
             sequence.position + first - start, sequence.page_table.data() + start / kPageTokens});
      }
    }
  }
}

AttentionTask AttentionPlan::task(int index, const float* q, float* partials) const {
  const Task& task = tasks_[static_cast<std::size_t>(index)];
  const Row& row = rows_[static_cast<std::size_t>(task.row)];
  const auto head = static_cast<std::size_t>(task.kv_head * heads_.group);
  const auto slots = static_cast<std::size_t>(row.range_slots);
  const std::size_t q_stride = static_cast<std::size_t>(heads() * heads_.head_width);
  const std::size_t slot = head * slots + static_cast<std::size_t>(task.range);
  return {.q = q + static_cast<std::size_t>(task.row) * q_stride +
               head * static_cast<std::size_t>(heads_.head_width),
          .q_stride = q_stride,
          .rows = task.rows,
          .group = heads_.group,
          .head_width = heads_.head_width,
          .value_width = heads_.value_width,
          .kv = nullptr,
          .page_stride = 0,
          .page_table = task.page_table,
          .tokens = task.tokens,
          .position = task.position,
          .window = window(),
          .partial = partials + row.partial + slot * partial_size(),
          .partial_row_stride = static_cast<std::size_t>(heads()) * slots * partial_size(),
          .partial_stride = slots * partial_size()};
}

void AttentionPlan::merge(int row, const float* partials, float* out) const {
  const Row& place = rows_[static_cast<std::size_t>(row)];
  const std::size_t size = partial_size();
  const float* partial = partials + place.partial;
  for (int head = 0; head < heads(); ++head, out += heads_.head_width) {
    float maximum = partial[static_cast<std::size_t>(place.first_range) * size];
    for (int i = place.first_range + 1; i < place.ranges; ++i)
      maximum = std::max(maximum, partial[static_cast<std::size_t>(i) * size]);
    float sum = 0.0F;
    std::fill(out, out + heads_.head_width, 0.0F);
    for (int i = place.first_range; i < place.ranges; ++i) {
      const float* part = partial + static_cast<std::size_t>(i) * size;
      const float factor = std::exp(part[0] - maximum);
      sum += factor * part[1];
      for (int e = 0; e < heads_.head_width; ++e) out[e] += factor * part[kPartialHead + e];
    }
    for (int e = 0; e < heads_.head_width; ++e) out[e] /= sum;
    partial += static_cast<std::size_t>(place.range_slots) * size;
  }
}

}  // namespace efimd::engine::cpu
