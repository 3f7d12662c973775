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
#include "engine/backend/cpu/simd/simd_queries.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kPageRegs = kPageTokens / kLanes;
static_assert(kPageTokens % (2 * kLanes) == 0, "scores of a page fill pairs of registers");
static_assert(kPageTokens * sizeof(std::uint16_t) == 64, "a key element of a page is a line");

/// Elements of a page that are converted once for several tiles: more would leave no room in L1.
/// With heads of 64, steps of 16 tokens and more gain 4 to 8 %; with heads of 128, nothing.
constexpr int kConvertedMax = 128 * kPageTokens;

inline Reg load_element(const std::uint16_t* at) { return Vector::load_half(at); }
inline Reg load_element(const float* at) { return Vector::load(at); }

/// N queries of one tile and their partials, over one page.
template <int N>
struct Tile {
  const float* const* q;  ///< [N][E]
  float* const* acc;      ///< [N][Ev]
  float *maximum, *sum;   ///< [N] of m, l; kLanes can be read
  /// Query i sees all tokens of the page before visible[i] (ascending) but the first hidden[i],
  /// which its window has passed.
  int visible[N], hidden[N];
  bool whole;  ///< all see the whole page
};

/// scores[i][c] = q[i] . K[c] for all tokens of the page, also those that hold nothing yet. Asks
/// for the lines of the K `ahead`.
template <int N, class Element>
void page_scores(const Tile<N>& tile, const Element* k, int width, const std::uint16_t* ahead,
                 float (*scores)[kPageTokens]) {
  for (int half = 0; half < kPageRegs / 2; ++half) {
    Reg sums[N][2];
    for (int i = 0; i < N; ++i) sums[i][0] = sums[i][1] = Vector::zero();
    for (int e = 0; e < width; ++e) {
      if (half == 0) ask_for(ahead + e * kPageTokens);
      const Element* at = k + e * kPageTokens + half * 2 * kLanes;
      const Reg left = load_element(at);
      const Reg right = load_element(at + kLanes);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        const Reg q = Vector::set(tile.q[i][e]);
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

/// Scores to weights exp(s - m), 0 for tokens that are not seen; their sums by lanes.
template <int N, bool kWhole>
void page_weights(const Tile<N>& tile, float (*scores)[kPageTokens], const float* maximum,
                  Reg* sums) {
  for (int i = 0; i < N; ++i) {
    const Reg most = Vector::set(maximum[i]);
    for (int j = 0; j < kPageRegs; ++j) {
      float* at = scores[i] + j * kLanes;
      Reg weight = exp_of(Vector::sub(Vector::load(at), most));
      if (!kWhole) weight = seen_of(weight, Vector::zero(), tile.hidden[i], tile.visible[i], j);
      Vector::store(at, weight);
      sums[i] = j == 0 ? weight : Vector::add(sums[i], weight);
    }
  }
}

/// Scores to weights, in place; updates m and l. kept[i]: the factor of what query i has
/// accumulated so far.
template <int N, bool kWhole>
void page_softmax(const Tile<N>& tile, float (*scores)[kPageTokens], float* kept) {
  static_assert(N < kLanes);
  Reg of[N];
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < kPageRegs; ++j) {
      Reg score = Vector::load(scores[i] + j * kLanes);
      if (!kWhole) {
        const Reg never = Vector::set(-__builtin_inff());
        score = seen_of(score, never, tile.hidden[i], tile.visible[i], j);
        Vector::store(scores[i] + j * kLanes, score);
      }
      of[i] = j == 0 ? score : Vector::max(of[i], score);
    }
  const Reg before = Vector::load(tile.maximum);
  const Reg maximum = Vector::max(before, maxima_of<N>(of));
  Vector::store_part(tile.maximum, maximum, N);
  // The first page has m = -inf: its accumulator is 0, and exp_of gives a finite factor for it.
  const Reg factor = exp_of(Vector::sub(before, maximum));
  Vector::store(kept, factor);
  page_weights<N, kWhole>(tile, scores, tile.maximum, of);
  const Reg sum = Vector::add(Vector::mul(Vector::load(tile.sum), factor), sums_of<N>(of));
  Vector::store_part(tile.sum, sum, N);
}

/// acc[i][e] = acc[i][e] * kept[i] + sum over c of weights[i][c] * V[c][e], W registers of e at a
/// time. Asks for as many lines of the V `ahead`.
template <int N, int W, class Element>
void page_values(const Tile<N>& tile, const Element* v, int stride, int first, int tokens,
                 const float* kept, const float (*weights)[kPageTokens],
                 const std::uint16_t* ahead) {
  Reg acc[N][W];
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < W; ++j)
      acc[i][j] = Vector::mul(Vector::set(kept[i]), Vector::load(tile.acc[i] + first + j * kLanes));
  for (int c = 0; c < tokens; ++c) {
    ask_for(ahead + first * kPageTokens + c * W * kLanes);
    Reg values[W];
    for (int j = 0; j < W; ++j)
      values[j] = Vector::held(load_element(v + c * stride + first + j * kLanes));
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) {
      const Reg weight = Vector::set(weights[i][c]);
      for (int j = 0; j < W; ++j) acc[i][j] = Vector::fma(weight, values[j], acc[i][j]);
    }
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < W; ++j) Vector::store(tile.acc[i] + first + j * kLanes, acc[i][j]);
}

/// A page for a tile.
struct TilePage {
  int start;                   ///< its first token
  const std::uint16_t* k;      ///< then its V
  const float* converted;      ///< the same in f32; null: nobody has converted it
  const std::uint16_t* ahead;  ///< the page to ask for meanwhile; k itself: none
};

/// A tile over a page, whose tokens it sees as `tile` says.
template <int N, class Element>
void attend_page(const AttentionTask& task, const Tile<N>& tile, const Element* k,
                 const std::uint16_t* ahead) {
  alignas(64) float weights[N][kPageTokens];
  alignas(64) float kept[kLanes];
  page_scores<N>(tile, k, task.head_width, ahead, weights);
  if (tile.whole)
    page_softmax<N, true>(tile, weights, kept);
  else
    page_softmax<N, false>(tile, weights, kept);
  const Element* v = k + task.head_width * kPageTokens;
  ahead += task.head_width * kPageTokens;
  const int tokens = tile.visible[N - 1];
  int e = 0;
  for (; e + 2 * kLanes <= task.value_width; e += 2 * kLanes)
    page_values<N, 2>(tile, v, task.value_width, e, tokens, kept, weights, ahead);
  for (; e < task.value_width; e += kLanes)
    page_values<N, 1>(tile, v, task.value_width, e, tokens, kept, weights, ahead);
}

/// Queries first .. first + N - 1 over a page.
template <int N>
void attend_tile(const AttentionTask& task, Queries& queries, int first, const TilePage& page) {
  Tile<N> tile{queries.q + first,
               queries.acc + first,
               queries.maximum + first,
               queries.sum + first,
               {},
               {},
               false};
  for (int i = 0; i < N; ++i) {
    const int end = queries.end[first + i];
    const int seen = (end < task.tokens ? end : task.tokens) - page.start;
    tile.visible[i] = seen < kPageTokens ? seen : kPageTokens;
    const int hidden = end - task.window - page.start;
    tile.hidden[i] = hidden > 0 ? hidden : 0;
  }
  tile.whole = tile.visible[0] == kPageTokens && tile.hidden[N - 1] == 0;
  if (page.converted != nullptr)
    attend_page(task, tile, page.converted, page.ahead);
  else
    attend_page(task, tile, page.k, page.ahead);
}

using AttendTile = void (*)(const AttentionTask&, Queries&, int, const TilePage&);
constexpr AttendTile kAttendTiles[] = {attend_tile<1>, attend_tile<2>, attend_tile<3>,
                                       attend_tile<4>,
#if defined(__AVX512F__)
                                       attend_tile<5>, attend_tile<6>, attend_tile<7>,
                                       attend_tile<8>
#endif
};
static_assert(sizeof(kAttendTiles) / sizeof(AttendTile) == Vector::kTileQueries);

/// Queries first .. last - 1 of the task over its pages. `page_of(i)` gives page i of the range, as
/// it lies in KvMemory, and `ahead_of(i)` what may be asked for meanwhile; both are asked in order.
template <class PageOf, class AheadOf>
inline void attend_queries(const AttentionTask& task, int first, int last, const PageOf& page_of,
                           const AheadOf& ahead_of) {
  Queries queries;
  start_queries(task, first, last, queries);
  const int elements = kPageTokens * (task.head_width + task.value_width);
  alignas(64) float converted[kConvertedMax];
  const int left_behind = task.position + 1 - task.window;  // by the first row
  int start = left_behind > 0 ? left_behind / kPageTokens * kPageTokens : 0;
  for (; start < task.tokens; start += kPageTokens) {
    TilePage page{start, page_of(start / kPageTokens), nullptr, nullptr};
    page.ahead = ahead_of(start / kPageTokens, page.k);
    // Rows before this page's first token see nothing of it, nor do rows whose window begins after
    // its last.
    const int first_row = start > task.position ? start - task.position : 0;
    const int row_behind = start + kPageTokens + task.window - 1 - task.position;
    const int end = (row_behind < task.rows ? row_behind : task.rows) * task.group;
    const int count = (end < last ? end : last) - first;
    int i = first_row * task.group - first;
    i = i > 0 ? i : 0;
    if (count - i > Vector::kTileQueries && elements <= kConvertedMax) {
      for (int at = 0; at < elements; at += kLanes)
        Vector::store(converted + at, Vector::load_half(page.k + at));
      page.converted = converted;
    }
    for (; i < count; i += Vector::kTileQueries) {
      const int left = count - i < Vector::kTileQueries ? count - i : Vector::kTileQueries;
      kAttendTiles[left - 1](task, queries, i, page);
      page.ahead = page.k;
    }
  }
  finish_queries(queries, last - first);
}

template <class PageOf, class AheadOf>
inline void attend_pages(const AttentionTask& task, const PageOf& page_of,
                         const AheadOf& ahead_of) {
  const int all = task.rows * task.group;
  for (int first = 0; first < all; first += kQueriesMax)
    attend_queries(task, first, first + kQueriesMax < all ? first + kQueriesMax : all, page_of,
                   ahead_of);
}

void attention(const AttentionTask& task) {
  const auto page_at = [&](int page) {
    return task.kv + static_cast<std::size_t>(task.page_table[page]) * task.page_stride;
  };
  attend_pages(task, page_at, [&](int page, const std::uint16_t* k) {
    return (page + 1) * kPageTokens < task.tokens ? page_at(page + 1) : k;
  });
}

}  // namespace
}  // namespace efimd::engine::cpu
