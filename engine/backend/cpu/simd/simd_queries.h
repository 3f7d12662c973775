#pragma once

// The query heads of an AttentionTask and what attention accumulates of each, over the Vector of
// the file that includes this; for simd_attention.h.
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/simd_rows.h"

namespace efimd::engine::cpu {
namespace {

/// Of a task, accumulated at a time; AttentionPlan::kTaskQueries, and the heads of one row.
constexpr int kQueriesMax = 64;

/// Some queries of a task. Their facts are taken apart once, not for each page.
struct Queries {
  const float* q[kQueriesMax];
  float* acc[kQueriesMax];
  int end[kQueriesMax];  ///< one past the last token of the range that its row may see
  // m and l, with room to read a register from the last.
  float maximum[kQueriesMax + kLanes];
  float sum[kQueriesMax + kLanes];
};

/// Queries first .. last - 1 (row = index / G, head = index % G) of the task, which have seen
/// nothing yet.
inline void start_queries(const AttentionTask& task, int first, int last, Queries& queries) {
  for (int i = 0; i < last - first; ++i) {
    const int row = (first + i) / task.group;
    const int head = (first + i) % task.group;
    queries.q[i] = task.q + static_cast<std::size_t>(row) * task.q_stride +
                   static_cast<std::size_t>(head) * static_cast<std::size_t>(task.head_width);
    queries.acc[i] = task.partial + static_cast<std::size_t>(row) * task.partial_row_stride +
                     static_cast<std::size_t>(head) * task.partial_stride + kPartialHead;
    queries.end[i] = task.position + row + 1;
    for (int e = 0; e < task.value_width; ++e) queries.acc[i][e] = 0.0F;
  }
  for (int i = 0; i < kQueriesMax + kLanes; ++i) {
    queries.maximum[i] = -__builtin_inff();
    queries.sum[i] = 0.0F;
  }
}

/// Leaves m and l where the partials have them.
inline void finish_queries(const Queries& queries, int count) {
  for (int i = 0; i < count; ++i) {
    float* partial = queries.acc[i] - kPartialHead;
    partial[0] = queries.maximum[i];
    partial[1] = queries.sum[i];
  }
}

/// Lane i: Vector::sum(of[i]), the same bits.
template <int N>
inline Reg sums_of(const Reg* of) {
#if defined(__AVX512F__)
  return Vector::sums<N>(of);
#else
  float sums[kLanes] = {};
  for (int i = 0; i < N; ++i) sums[i] = Vector::sum(of[i]);
  return Vector::load(sums);
#endif
}

/// Lane i: Vector::maximum(of[i]).
template <int N>
inline Reg maxima_of(const Reg* of) {
#if defined(__AVX512F__)
  return Vector::maxima<N>(of);
#else
  float maxima[kLanes] = {};
  for (int i = 0; i < N; ++i) maxima[i] = Vector::maximum(of[i]);
  return Vector::load(maxima);
#endif
}

/// Asks for a line into L2: the hardware sees no stream through the page table. Requests are spread
/// over what is computed meanwhile, because a core has some 16 lines on their way at most.
inline void ask_for(const std::uint16_t* line) { __builtin_prefetch(line, 0, 2); }

}  // namespace
}  // namespace efimd::engine::cpu
