#pragma once

// Two panels x some int8 inputs: more tokens than one pass over a panel takes, without slabs.
//
// A broadcast input serves both panels, so loads do not limit the product, and weights are unpacked
// in registers, anew for each kPairTokens tokens. That pays where little is to be unpacked. The
// arithmetic of an output element is the same as everywhere.
#include "engine/backend/cpu/simd/simd_panels.h"
#include "engine/backend/cpu/simd/slab_sums.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kPair = 2;
constexpr int kPairTokens = 4;

/// sums[kPair i + p] += a group's rows of panel p * x[i].
template <class Type, int N>
inline void multiply_group_of_pair(const Word (*quads)[kQuads], const UnitScales* scales, int group,
                                   const SlabInputs& in, Reg* acc) {
  using Products = Words::Products<Type::kTop>;
  static_assert(Type::kParts == 1);
  const auto at = [&](int i) { return static_cast<std::size_t>(i / kPair) * in.group_stride; };
  Products products[kPair * N];
#pragma GCC unroll 8
  for (int i = 0; i < kPair * N; ++i) products[i].start(start_of<Type>(in, at(i), 0));
#pragma GCC unroll 8
  for (int quad = 0; quad < kQuads; ++quad)
#pragma GCC unroll 8
    for (int i = 0; i < kPair * N; ++i)
      products[i].add(quad, quads[i % kPair][quad],
                      in.x + static_cast<std::size_t>(i / kPair) * in.stride + 4 * quad);
#pragma GCC unroll 8
  for (int i = 0; i < kPair * N; ++i) {
    const Reg scale = Vector::mul(Vector::load(scales[i % kPair].scales[group][0]),
                                  Vector::set(in.scales[at(i)]));
    acc[i] = Vector::fma(Words::to_float(products[i].sum()), scale, acc[i]);
  }
  if constexpr (Type::kMinimum) {
#pragma GCC unroll 8
    for (int i = 0; i < kPair * N; ++i)
      acc[i] = Vector::subtract_product(Vector::load(scales[i % kPair].minimums[group]),
                                        Vector::set(in.totals[at(i)]), acc[i]);
  }
}

/// The panel of `pass` and the one behind it, `bytes` further, times N tokens from `pass.token`.
template <class Type, int N>
void multiply_pair(const PanelPass& pass, std::size_t bytes, SlabInputs in, AskedLines& ahead,
                   const Outputs& out) {
  constexpr PanelLayout kLayout = kPanelOf<Type>;
  const unsigned char* at = pass.panel;
  UnitScales scales[kPair];
  Reg acc[kPair * N];
#pragma GCC unroll 8
  for (Reg& sum : acc) sum = Vector::zero();
  for (int first = 0; first < pass.groups; first += kLayout.unit_groups) {
    read_head<Type>(at, 0, scales[0], 0);
    read_head<Type>(at + bytes, 0, scales[1], 0);
    at += kLayout.head_lines * kPanelLine;
    const int left = pass.groups - first;
    const int count = left < kLayout.unit_groups ? left : kLayout.unit_groups;
    for (int group = 0; group < count; ++group, in.advance()) {
      ahead.ask_some();
      Word quads[kPair][kQuads];
      read_quads<Type>(at, quads[0]);
      read_quads<Type>(at + bytes, quads[1]);
      multiply_group_of_pair<Type, N>(quads, scales, group, in, acc);
      at += kLayout.group_lines * kPanelLine;
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kPair * N; ++i)
    store_rows(out, pass.token + i / kPair, pass.row + i % kPair * kRows, acc[i]);
}

using MultiplyPair = void (*)(const PanelPass&, std::size_t, SlabInputs, AskedLines&,
                              const Outputs&);
template <class Type>
constexpr MultiplyPair kMultiplyPair[kPairTokens] = {
    multiply_pair<Type, 1>, multiply_pair<Type, 2>, multiply_pair<Type, 3>, multiply_pair<Type, 4>};

/// Two panels times some tokens. L2 is asked for the next two meanwhile.
template <class Type>
void multiply_pair_by_tokens(PanelPass pass, RowRange tokens, const Inputs& in,
                             const Outputs& out) {
  static_assert(kPairTokensMax<Type> == 0 || kPanelParts == 1);
  const int cols = pass.groups * kGroup;
  const std::size_t bytes = bytes_of_panel<Type>(pass.groups);
  const int passes = (tokens.last - tokens.first + kPairTokens - 1) / kPairTokens;
  AskedLines ahead(pass.panel + kPair * bytes, kPair * bytes, pass.groups * passes);
  for (pass.token = tokens.first; pass.token < tokens.last; pass.token += kPairTokens) {
    const int left = tokens.last - pass.token;
    kMultiplyPair<Type>[(left < kPairTokens ? left : kPairTokens) - 1](
        pass, bytes, {in, cols, pass.token, 0}, ahead, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
