#pragma once

// Panels (panels.h) x int8 inputs, over the Vector and the Words of the file that includes this.
//
// Weights are unpacked in registers and multiplied with up to Words::kTokensAtOnce tokens. More
// tokens need further passes over the panel, which by then is in L2. The arithmetic of an output
// element is that of simd_quantized.h, operation by operation: the same bits.
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/kernels/panels.h"
#include "engine/backend/cpu/simd/simd_inputs.h"
#include "engine/backend/cpu/simd/simd_unpack.h"

namespace efimd::engine::cpu {
namespace {

using Reg = Vector::Reg;

/// Registers that hold a value of each row of a panel.
constexpr int kPanelParts = kPanelRows / kRows;
constexpr int kUnitGroupsMax = 8;

/// Against no prefetch, both cores of an EPYC (Zen 5), rows of 4864: Q8_0 38 -> 40 GB/s, Q4_0 30 ->
/// 36, Q4_K 22 -> 32, Q6_K 20 -> 31.
constexpr std::size_t kAheadOfOneToken = 4096;

template <class Type>
constexpr PanelLayout kPanelOf{};
template <>
constexpr PanelLayout kPanelOf<Q8_0> = kQ8_0Panel;
template <>
constexpr PanelLayout kPanelOf<Q4_0> = kQ4_0Panel;
template <>
constexpr PanelLayout kPanelOf<Q4_1> = kQ4_1Panel;
template <>
constexpr PanelLayout kPanelOf<Q5_0> = kQ5_0Panel;
template <>
constexpr PanelLayout kPanelOf<Q5_1> = kQ5_1Panel;
template <>
constexpr PanelLayout kPanelOf<Q4_K> = kQ4_KPanel;
template <>
constexpr PanelLayout kPanelOf<Q5_K> = kQ5_KPanel;
template <>
constexpr PanelLayout kPanelOf<Q6_K> = kQ6_KPanel;

/// A unit's scales and minimums, as in a Slab.
struct alignas(64) UnitScales {
  float scales[kUnitGroupsMax][2][kRows];
  float minimums[kUnitGroupsMax][kRows];
};

inline Word word_of(const unsigned char* at, int line) {
  return Words::load(at + line * kPanelLine);
}

/// Scales from a unit's head, to groups of `out` from `first`; `part` of the rows.
template <class Type, class Target>
inline void read_head(const unsigned char* head, int part, Target& out, int first) {
  const unsigned char* words = head + 4 * kRows * part;
  const unsigned char* halves = head + 2 * kRows * part;
  if constexpr (Type::kGroups == 1 && !Type::kMinimum) {
    for (int group = 0; group < kPanelOf<Type>.unit_groups; ++group)
      store_scale<Type::kShift>(out, first + group, 0,
                                Vector::load_half(halves + 2 * kPanelRows * group));
  } else if constexpr (Type::kGroups == 1) {
    for (int group = 0; group < kPanelOf<Type>.unit_groups; ++group)
      store_scale_and_minimum<Type>(out, first + group, word_of(words, group));
  } else {
    const Word head_words[4] = {word_of(words, 0), word_of(words, 1), word_of(words, 2),
                                word_of(words, 3)};
    if constexpr (Type::kParts == 2)
      Type::store_scales(head_words, Vector::load_half(halves + 4 * kPanelLine), out, first);
    else
      store_group_scales(head_words, out, first);
  }
}

/// `word` moved by so many bits to the left, negative: to the right.
template <int kLeft>
inline Word moved(Word word) {
  if constexpr (kLeft > 0) return Words::left(word, kLeft);
  if constexpr (kLeft < 0) return Words::right(word, -kLeft);
  return word;
}

/// Quad `j` with its upper bits, `kBits` of each byte, from line h of a group.
template <class Type, int kBits, int j>
inline Word with_upper(Word quad, Word upper) {
  constexpr int kPlace = 4 + Type::kShift;  // of the lowest of them in a quad
  constexpr int kIndex = kBits * j % 8;     // of the same in h
  const Word mask = Words::set((kBits == 1 ? 0x10101010U : 0x30303030U) << Type::kShift);
  return Words::either(quad, Words::both(moved<kPlace - kIndex>(upper), mask));
}

template <class Type, int kBits>
inline void add_upper(const unsigned char* at, Word* quads) {
  const Word low = word_of(at, 0);
  const Word high = kBits == 2 ? word_of(at, 1) : low;
  quads[0] = with_upper<Type, kBits, 0>(quads[0], low);
  quads[1] = with_upper<Type, kBits, 1>(quads[1], low);
  quads[2] = with_upper<Type, kBits, 2>(quads[2], low);
  quads[3] = with_upper<Type, kBits, 3>(quads[3], low);
  quads[4] = with_upper<Type, kBits, 4>(quads[4], high);
  quads[5] = with_upper<Type, kBits, 5>(quads[5], high);
  quads[6] = with_upper<Type, kBits, 6>(quads[6], high);
  quads[7] = with_upper<Type, kBits, 7>(quads[7], high);
}

/// The quads of a group, as a Slab has them.
template <class Type>
inline void read_quads(const unsigned char* at, Word* quads) {
  if constexpr (Type::kTop == 255) {
#pragma GCC unroll 8
    for (int j = 0; j < kQuads; ++j) {
      quads[j] = word_of(at, j);
      if constexpr (Words::kSignedBytes) quads[j] = Words::flip(quads[j], Words::set(0x80808080U));
    }
  } else {
    constexpr int kUpperLines = kPanelOf<Type>.group_lines - 4;
    Word bytes[4];
#pragma GCC unroll 8
    for (int j = 0; j < 4; ++j) bytes[j] = word_of(at, kUpperLines + j);
    split_nibbles<Type::kShift>(bytes, quads);
    if constexpr (kUpperLines > 0) add_upper<Type, kUpperLines>(at, quads);
  }
}

/// One pass over a panel: some of its rows times some tokens.
struct PanelPass {
  const unsigned char* panel;
  int groups;
  int part;           ///< of the rows
  int row;            ///< of the matrix, where that part begins
  int token;          ///< the first
  std::size_t ahead;  ///< bytes to the place that L2 is asked for meanwhile; 0: none
};

/// sums[i] += the rows of a group * x[i].
template <class Type, int N>
inline void multiply_group(const Word* quads, const UnitScales& scales, int group,
                           const SlabInputs& in, Reg* acc) {
  using Products = Words::Products<Type::kTop>;
  constexpr int kPartQuads = kQuads / Type::kParts;
  const auto at = [&](int i) { return static_cast<std::size_t>(i) * in.group_stride; };
#pragma GCC unroll 2
  for (int part = 0; part < Type::kParts; ++part) {
    Products products[N];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) products[i].start(start_of<Type>(in, at(i), part));
#pragma GCC unroll 8
    for (int j = 0; j < kPartQuads; ++j) {
      const int quad = part * kPartQuads + j;
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i)
        products[i].add(j, quads[quad], in.x + static_cast<std::size_t>(i) * in.stride + 4 * quad);
    }
    const Reg scale = Vector::load(scales.scales[group][part]);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      acc[i] = Vector::fma(Words::to_float(products[i].sum()),
                           Vector::mul(scale, Vector::set(in.scales[at(i)])), acc[i]);
  }
  if constexpr (Type::kMinimum) {
    const Reg minimums = Vector::load(scales.minimums[group]);
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      acc[i] = Vector::subtract_product(minimums, Vector::set(in.totals[at(i)]), acc[i]);
  }
}

/// out = acc (+ bias), or += it: a part of a panel's rows, from `row`, for one token.
inline void store_rows(const Outputs& out, int t, int row, Reg product) {
  float* target =
      out.values + static_cast<std::size_t>(t) * out.stride + static_cast<std::size_t>(row);
  if (out.bias != nullptr) product = Vector::add(product, Vector::load(out.bias + row));
  if (out.store == Store::kAdd) product = Vector::add(Vector::load(target), product);
  Vector::store(target, product);
}

template <int kLevel>
inline void ask(const unsigned char* at, int lines) {
#pragma GCC unroll 8
  for (int line = 0; line < lines; ++line) __builtin_prefetch(at + line * kPanelLine, 0, kLevel);
}

/// Parts of a panel that one pass takes together. With few tokens memory is what takes the time, and
/// it must not rest while a second part is multiplied that the first has brought.
constexpr int parts_with(int tokens) { return tokens <= 2 ? kPanelParts : 1; }

/// From `pass.part` and `pass.row`, so many parts as parts_with() says.
template <class Type, int N>
void multiply_panel(const PanelPass& pass, SlabInputs in, const Outputs& out) {
  constexpr int kParts = parts_with(N);
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  constexpr int kGroupBytes = kLayout.group_lines * kPanelLine;
  constexpr int kLevel = N > 1 ? kL2 : kL1;
  // One token is done before L2 could help, so its pass prefetches into the first level.
  const std::size_t ahead = N > 1 ? pass.ahead : kAheadOfOneToken;
  const unsigned char* at = pass.panel;
  UnitScales scales[kParts];
  Reg acc[kParts * N];
#pragma GCC unroll 8
  for (Reg& sum : acc) sum = Vector::zero();
  for (int first = 0; first < pass.groups; first += kLayout.unit_groups) {
    if (ahead != 0) ask<kLevel>(at + ahead, kLayout.head_lines);
#pragma GCC unroll 4
    for (int part = 0; part < kParts; ++part)
      read_head<Type>(at, pass.part + part, scales[part], 0);
    at += kLayout.head_lines * kPanelLine;
    const int left = pass.groups - first;
    const int count = left < kLayout.unit_groups ? left : kLayout.unit_groups;
    for (int group = 0; group < count; ++group, at += kGroupBytes, in.advance()) {
      if (ahead != 0) ask<kLevel>(at + ahead, kLayout.group_lines);
#pragma GCC unroll 4
      for (int part = 0; part < kParts; ++part) {
        Word quads[kQuads];
        read_quads<Type>(at + 4 * kRows * (pass.part + part), quads);
        multiply_group<Type, N>(quads, scales[part], group, in, acc + part * N);
      }
    }
  }
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part)
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i)
      store_rows(out, pass.token + i, pass.row + part * kRows, acc[part * N + i]);
}

using MultiplyPanel = void (*)(const PanelPass&, SlabInputs, const Outputs&);
template <class Type>
constexpr MultiplyPanel kMultiplyPanel[] = {
    multiply_panel<Type, 1>, multiply_panel<Type, 2>, multiply_panel<Type, 3>,
    multiply_panel<Type, 4>,
#if defined(__AVX512F__)
    multiply_panel<Type, 5>, multiply_panel<Type, 6>, multiply_panel<Type, 7>,
    multiply_panel<Type, 8>
#endif
};
static_assert(sizeof(kMultiplyPanel<Q8_0>) / sizeof(MultiplyPanel) == Words::kTokensAtOnce);

/// The rows of `rows` that whole panels hold; none if there are no panels.
inline RowRange panels_of(const Weights& weights, RowRange rows) {
  const int first = (rows.first + kPanelRows - 1) / kPanelRows * kPanelRows;
  const int last = rows.last / kPanelRows * kPanelRows;
  return weights.panels != nullptr && first < last ? RowRange{first, last} : RowRange{0, 0};
}

template <class Type>
std::size_t bytes_of_panel(int groups) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  const int units = (groups + kLayout.unit_groups - 1) / kLayout.unit_groups;
  const int lines = units * kLayout.head_lines + groups * kLayout.group_lines;
  return static_cast<std::size_t>(lines) * kPanelLine;
}

/// One panel times some tokens. The second pass, if there is one, asks L2 for the next panel,
/// because the first may still wait for this panel.
template <class Type>
void multiply_tokens(PanelPass pass, RowRange tokens, const Inputs& in, const Outputs& out) {
  constexpr int kAtOnce = Words::kTokensAtOnce;
  const int cols = pass.groups * kGroup;
  const std::size_t ahead = bytes_of_panel<Type>(pass.groups);
  const int asking = tokens.last - tokens.first > kAtOnce ? tokens.first + kAtOnce : tokens.first;
  const int row = pass.row;
  for (int t = tokens.first; t < tokens.last; t += kAtOnce) {
    const int left = tokens.last - t;
    const int together = left < kAtOnce ? left : kAtOnce;
    pass.token = t;
    for (pass.part = 0; pass.part < kPanelParts; pass.part += parts_with(together)) {
      pass.row = row + pass.part * kRows;
      pass.ahead = t == asking && pass.part == 0 ? ahead : 0;
      kMultiplyPanel<Type>[together - 1](pass, {in, cols, t, 0}, out);
    }
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
