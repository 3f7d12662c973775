#pragma once

// Attention over KV pages, over the Vector of the file that includes this; the specification is
// attention() in kernels_scalar.cpp.
//   q        [rows][G][E]           f32, rotated, times 1 / sqrt(E)
//   k, v     [E][P], [P][Ev]        f16, one page after the other through the page table
//   partial  [rows][G] of m, l, acc [Ev]
// K is stored with tokens side by side, so that a score is a lane of its own: summed over e in
// order, no reduction. V is stored with elements side by side: an output element is a lane, summed
// over the tokens in order. Tokens that a query does not see have weight 0 exactly. So a query's
// result does not depend on which queries share its tile. Reads 4 * C * E bytes per KV head for up
// to kTileQueries queries at a time.
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/simd_rows.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kPageRegs = kPageTokens / kLanes;
static_assert(kPageTokens % (2 * kLanes) == 0, "scores of a page fill pairs of registers");

/// N queries of one tile, their q and partials, and the tokens of the page that each sees. Query i
/// sees all before visible[i] (ascending) but the first hidden[i], which its window has passed.
template <int N>
struct Queries {
  const float* q[N];
  float* partial[N];
  int visible[N];
  int hidden[N];
};

/// scores[i][c] = q[i] . K[c] for all tokens of the page, also those that hold nothing yet.
template <int N>
void page_scores(const Queries<N>& queries, const std::uint16_t* k, int width,
                 float (*scores)[kPageTokens]) {
  for (int half = 0; half < kPageRegs / 2; ++half) {
    Reg sums[N][2];
    for (int i = 0; i < N; ++i) sums[i][0] = sums[i][1] = Vector::zero();
    for (int e = 0; e < width; ++e) {
      const std::uint16_t* at = k + e * kPageTokens + half * 2 * kLanes;
      const Reg left = Vector::load_half(at);
      const Reg right = Vector::load_half(at + kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        const Reg q = Vector::set(queries.q[i][e]);
        sums[i][0] = Vector::fma(q, left, sums[i][0]);
        sums[i][1] = Vector::fma(q, right, sums[i][1]);
      }
    }
    for (int i = 0; i < N; ++i) {
      Vector::store(scores[i] + half * 2 * kLanes, sums[i][0]);
      Vector::store(scores[i] + half * 2 * kLanes + kLanes, sums[i][1]);
    }
  }
}

/// Lanes of register `j` of a page that hold one of its first `visible` tokens.
inline int visible_lanes(int visible, int j) {
  const int count = visible - j * kLanes;
  return count < 0 ? 0 : count > kLanes ? kLanes : count;
}

/// Register `j` of a page's values for tokens that a query sees, `otherwise` for the others.
inline Reg seen_of(Reg values, Reg otherwise, int hidden, int visible, int j) {
  const Reg seen = Vector::select_first(visible_lanes(visible, j), values, otherwise);
  return hidden == 0 ? seen : Vector::select_first(visible_lanes(hidden, j), otherwise, seen);
}

/// The maximum of `before` and the scores that are seen; the others become -inf.
inline float page_maximum(float* scores, int hidden, int visible, float before) {
  Reg largest = Vector::set(before);
  for (int j = 0; j < kPageRegs; ++j) {
    const Reg seen = seen_of(Vector::load(scores + j * kLanes), Vector::set(-__builtin_inff()),
                             hidden, visible, j);
    Vector::store(scores + j * kLanes, seen);
    largest = Vector::max(largest, seen);
  }
  return Vector::maximum(largest);
}

/// Scores to weights exp(s - maximum), 0 for tokens that are not seen; returns their sum.
inline float page_weights(float* scores, int hidden, int visible, float maximum) {
  Reg sum = Vector::zero();
  for (int j = 0; j < kPageRegs; ++j) {
    const Reg weight = exp_of(Vector::sub(Vector::load(scores + j * kLanes), Vector::set(maximum)));
    const Reg seen = seen_of(weight, Vector::zero(), hidden, visible, j);
    Vector::store(scores + j * kLanes, seen);
    sum = Vector::add(sum, seen);
  }
  return Vector::sum(sum);
}

/// Scores to weights, in place; updates m and l. kept[i]: the factor of what query i has
/// accumulated so far.
template <int N>
void page_softmax(const Queries<N>& queries, float (*scores)[kPageTokens], float* kept) {
  static_assert(N <= kLanes);
  float fall[kLanes] = {};
  for (int i = 0; i < N; ++i) {
    float& maximum = queries.partial[i][0];
    const float before = maximum;
    maximum = page_maximum(scores[i], queries.hidden[i], queries.visible[i], before);
    fall[i] = before - maximum;
  }
  // The first page has m = -inf: its accumulator is 0, and exp_of gives a finite factor for it.
  Vector::store(kept, exp_of(Vector::load(fall)));
  for (int i = 0; i < N; ++i) {
    float& sum = queries.partial[i][1];
    sum = sum * kept[i] +
          page_weights(scores[i], queries.hidden[i], queries.visible[i], queries.partial[i][0]);
  }
}

/// acc[i][e] = acc[i][e] * kept[i] + sum over c of weights[i][c] * V[c][e], W registers of e at a
/// time.
template <int N, int W>
void page_values(const Queries<N>& queries, const std::uint16_t* v, int stride, int first,
                 int tokens, const float* kept, const float (*weights)[kPageTokens]) {
  Reg acc[N][W];
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < W; ++j)
      acc[i][j] = Vector::mul(Vector::set(kept[i]),
                              Vector::load(queries.partial[i] + kPartialHead + first + j * kLanes));
  for (int c = 0; c < tokens; ++c) {
    Reg values[W];
    for (int j = 0; j < W; ++j)
      values[j] = Vector::held(Vector::load_half(v + c * stride + first + j * kLanes));
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const Reg weight = Vector::set(weights[i][c]);
      for (int j = 0; j < W; ++j) acc[i][j] = Vector::fma(weight, values[j], acc[i][j]);
    }
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < W; ++j)
      Vector::store(queries.partial[i] + kPartialHead + first + j * kLanes, acc[i][j]);
}

/// Queries first .. first + N - 1 (row = index / G, head = index % G) over the page that starts at
/// token `start`.
template <int N>
void attend_tile(const AttentionTask& task, int first, int start, const std::uint16_t* k) {
  Queries<N> queries;
  for (int i = 0; i < N; ++i) {
    const int row = (first + i) / task.group;
    const int head = (first + i) % task.group;
    queries.q[i] = task.q + static_cast<std::size_t>(row) * task.q_stride +
                   static_cast<std::size_t>(head) * static_cast<std::size_t>(task.head_width);
    queries.partial[i] = task.partial + static_cast<std::size_t>(row) * task.partial_row_stride +
                         static_cast<std::size_t>(head) * task.partial_stride;
    const int seen = task.position + row + 1 < task.tokens ? task.position + row + 1 : task.tokens;
    queries.visible[i] = seen - start < kPageTokens ? seen - start : kPageTokens;
    const int hidden = task.position + row + 1 - task.window - start;
    queries.hidden[i] = hidden > 0 ? hidden : 0;
  }
  alignas(64) float weights[N][kPageTokens];
  float kept[kLanes];
  page_scores<N>(queries, k, task.head_width, weights);
  page_softmax<N>(queries, weights, kept);
  const std::uint16_t* v = k + task.head_width * kPageTokens;
  const int tokens = queries.visible[N - 1];
  int e = 0;
  for (; e + 2 * kLanes <= task.value_width; e += 2 * kLanes)
    page_values<N, 2>(queries, v, task.value_width, e, tokens, kept, weights);
  for (; e < task.value_width; e += kLanes)
    page_values<N, 1>(queries, v, task.value_width, e, tokens, kept, weights);
}

using AttendTile = void (*)(const AttentionTask&, int, int, const std::uint16_t*);
constexpr AttendTile kAttendTiles[] = {attend_tile<1>, attend_tile<2>, attend_tile<3>,
                                       attend_tile<4>,
#if defined(__AVX512F__)
                                       attend_tile<5>, attend_tile<6>, attend_tile<7>,
                                       attend_tile<8>
#endif
};
static_assert(sizeof(kAttendTiles) / sizeof(AttendTile) == Vector::kTileQueries);

void start_partials(const AttentionTask& task) {
  for (int row = 0; row < task.rows; ++row) {
    for (int head = 0; head < task.group; ++head) {
      float* partial = task.partial + static_cast<std::size_t>(row) * task.partial_row_stride +
                       static_cast<std::size_t>(head) * task.partial_stride;
      partial[0] = -__builtin_inff();
      for (int i = 1; i < kPartialHead + task.value_width; ++i) partial[i] = 0.0F;
    }
  }
}

/// Asks for the next page's K and V during this one, because the hardware sees no stream through
/// the table.
inline void prefetch_page(const std::uint16_t* k, int elements) {
  for (int i = 0; i < elements; i += 32) __builtin_prefetch(k + i);
}

/// `page_of(i)` gives page i of the range, as it lies in KvMemory; it is asked in order.
template <class PageOf>
inline void attend_pages(const AttentionTask& task, const PageOf& page_of) {
  start_partials(task);
  const int left_behind = task.position + 1 - task.window;  // by the first row
  int start = left_behind > 0 ? left_behind / kPageTokens * kPageTokens : 0;
  for (; start < task.tokens; start += kPageTokens) {
    const std::uint16_t* k = page_of(start / kPageTokens);
    // Rows before this page's first token see nothing of it, nor do rows whose window begins after
    // its last.
    const int first_row = start > task.position ? start - task.position : 0;
    const int row_behind = start + kPageTokens + task.window - 1 - task.position;
    const int queries = (row_behind < task.rows ? row_behind : task.rows) * task.group;
    for (int i = first_row * task.group; i < queries; i += Vector::kTileQueries) {
      const int count = queries - i < Vector::kTileQueries ? queries - i : Vector::kTileQueries;
      kAttendTiles[count - 1](task, i, start, k);
    }
  }
}

void attention(const AttentionTask& task) {
  const int page_elements = kPageTokens * (task.head_width + task.value_width);
  attend_pages(task, [&](int page) {
    const PageIndex* at = task.page_table + page;
    if ((page + 1) * kPageTokens < task.tokens)
      prefetch_page(task.kv + static_cast<std::size_t>(at[1]) * task.page_stride, page_elements);
    return task.kv + static_cast<std::size_t>(at[0]) * task.page_stride;
  });
}

}  // namespace
}  // namespace efimd::engine::cpu
