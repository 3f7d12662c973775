#pragma once

// Quantized weights x int8 inputs, over the Vector and the Words of the file that includes this.
//
// As many weight rows as a register has lanes, one row per lane, are unpacked from the file's
// blocks into a slab that stays in L1 (simd_unpack.h), then multiplied with all tokens of the step:
// weights come from memory once per step, and are unpacked once.
//
//   x       int8 [T][cols], four of them broadcast to all rows
//
// The sum over weights that share a scale is exact, in integers; then sum += float(products) *
// (w_scale * x_scale), sum -= minimum * total, in the order of the groups, one lane per row,
// whatever the number of tokens.
#include "engine/backend/cpu/kernels.h"
#include "engine/backend/cpu/simd_dot.h"
#include "engine/backend/cpu/simd_rows.h"
#include "engine/backend/cpu/simd_unpack.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kTokensPerSlab = 64;
// At few tokens memory decides: short slabs keep it busy while they are multiplied. Against slabs
// of 32 groups, AVX-512, one core of a busy Xeon (Emerald Rapids, 2 cores, Q8_0, cols 4864):
// 14.2 -> 18.5 GB/s at one token, 10.5 -> 15 at four.
constexpr int kFewTokens = 16;
constexpr int kSlabGroupsFew = 4;
constexpr int kAheadGroups = 16;  // of prefetch, in the order of reading
constexpr std::size_t kCacheLine = 64;

/// What a slab is multiplied with: the inputs of tokens from `t`, groups from `group`.
struct SlabInputs {
  SlabInputs(const Inputs& in, int cols, int t, int group)
      : stride(static_cast<std::size_t>(cols)),
        group_stride(stride / kGroup),
        x(in.quants + static_cast<std::size_t>(t) * stride + group * kGroup),
        scales(in.scales + static_cast<std::size_t>(t) * group_stride + group),
        sums(in.sums + static_cast<std::size_t>(t) * group_stride + group),
        half_sums(in.half_sums + static_cast<std::size_t>(t) * group_stride + group),
        totals(in.totals + static_cast<std::size_t>(t) * group_stride + group) {}

  std::size_t stride;        ///< of x, from token to token
  std::size_t group_stride;  ///< of the others
  const std::int8_t* x;
  const float* scales;
  const std::int32_t* sums;
  const std::int32_t* half_sums;
  const float* totals;
};

/// Where the integer sum of part `part` of a group starts: what takes the center out of the quads.
template <class Type>
inline int start_of(const SlabInputs& in, std::size_t at, int part) {
  if (Type::kCenter == 0) return 0;
  if (Type::kParts == 1) return -Type::kCenter * in.sums[at];
  return -Type::kCenter * (part == 0 ? in.half_sums[at] : in.sums[at] - in.half_sums[at]);
}

/// sums[i][row] += slab * x[i] for N tokens.
template <class Type, int N>
void multiply_slab(const Slab& slab, int groups, const SlabInputs& in, float (*sums)[kRows]) {
  using Products = Words::Products<Type::kTop>;
  constexpr int kPartQuads = kQuads / Type::kParts;
  Reg acc[N];
  for (int i = 0; i < N; ++i) acc[i] = Vector::load(sums[i]);
  for (int group = 0; group < groups; ++group) {
    const std::int8_t* x = in.x + group * kGroup;
    const auto at = [&](int i) {
      return static_cast<std::size_t>(i) * in.group_stride + static_cast<std::size_t>(group);
    };
    for (int part = 0; part < Type::kParts; ++part) {
      // Quads outside, tokens inside: neighbours in the instruction stream belong to different
      // sums, which hides the latency of a product.
      Products products[N];
      for (int i = 0; i < N; ++i) products[i].start(start_of<Type>(in, at(i), part));
#pragma GCC unroll 8
      for (int j = 0; j < kPartQuads; ++j) {
        const int quad = part * kPartQuads + j;
        const Word weights = Words::load(slab.quads[group][quad]);
#pragma GCC unroll 8
        for (int i = 0; i < N; ++i)
          products[i].add(j, weights, x + static_cast<std::size_t>(i) * in.stride + 4 * quad);
      }
      const Reg scales = Vector::load(slab.scales[group][part]);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i) {
        const Reg scale = Vector::mul(scales, Vector::set(in.scales[at(i)]));
        acc[i] = Vector::fma(Words::to_float(products[i].sum()), scale, acc[i]);
      }
    }
    if constexpr (Type::kMinimum) {
      const Reg minimums = Vector::load(slab.minimums[group]);
#pragma GCC unroll 8
      for (int i = 0; i < N; ++i)
        acc[i] = Vector::subtract_product(minimums, Vector::set(in.totals[at(i)]), acc[i]);
    }
  }
  for (int i = 0; i < N; ++i) Vector::store(sums[i], acc[i]);
}

using MultiplySlab = void (*)(const Slab&, int groups, const SlabInputs&, float (*sums)[kRows]);
template <class Type>
constexpr MultiplySlab kMultiplySlab[] = {
    multiply_slab<Type, 1>, multiply_slab<Type, 2>, multiply_slab<Type, 3>,
    multiply_slab<Type, 4>,
#if defined(__AVX512F__)
    multiply_slab<Type, 5>, multiply_slab<Type, 6>, multiply_slab<Type, 7>,
    multiply_slab<Type, 8>
#endif
};
static_assert(sizeof(kMultiplySlab<Q8_0>) / sizeof(MultiplySlab) == Words::kTokensAtOnce);

/// `blocks` blocks of R rows from `at`; meanwhile asks memory for the same of `next`.
template <class Type>
void unpack_slab(const unsigned char* at, std::size_t stride, int blocks, const unsigned char* next,
                 Slab& slab) {
  for (int block = 0; block < blocks; ++block, at += Type::kBytes, next += Type::kBytes) {
    for (std::size_t r = 0; r < kRows; ++r)
      for (std::size_t byte = 0; byte < Type::kBytes; byte += kCacheLine)
        __builtin_prefetch(next + r * stride + byte);
    Type::unpack(at, stride, slab, block * Type::kGroups);
  }
}

/// Copies `bytes` bytes of the rows that there are, so that a slab can be unpacked from R rows
/// where fewer are left.
inline void copy_rows(const unsigned char* at, std::size_t stride, int rows, std::size_t bytes,
                      unsigned char* copy) {
  __builtin_memset(copy, 0, kRows * bytes);
  for (int r = 0; r < rows; ++r)
    __builtin_memcpy(copy + static_cast<std::size_t>(r) * bytes,
                     at + static_cast<std::size_t>(r) * stride, bytes);
}

/// The block that is kAheadGroups groups after block `block` of the rows from n, in the order in
/// which they are read; `otherwise` behind the last row.
template <class Type>
const unsigned char* ahead_of(const Weights& weights, RowRange rows, int n, int block,
                              const unsigned char* otherwise) {
  const int blocks = weights.cols / (kGroup * Type::kGroups);
  const int ahead = block + kAheadGroups / Type::kGroups;
  const int row = n + ahead / blocks * kRows;
  if (row + kRows > rows.last) return otherwise;
  return weights.data + static_cast<std::size_t>(row) * weights.row_bytes +
         static_cast<std::size_t>(ahead % blocks) * Type::kBytes;
}

/// Row n .. n + rows - 1 of the product for token t.
inline void store_sums(const float* sums, int rows, const Outputs& out, int t, int n) {
  float* target =
      out.values + static_cast<std::size_t>(t) * out.stride + static_cast<std::size_t>(n);
  Reg product = Vector::load(sums);
  if (out.bias != nullptr) product = Vector::add(product, load_up_to(out.bias + n, rows));
  if (out.store == Store::kAdd) product = Vector::add(load_up_to(target, rows), product);
  store_up_to(target, product, rows);
}

/// Up to R rows from n, for tokens t .. t + tokens - 1 (at most 64).
template <class Type>
void multiply_rows(const Weights& weights, RowRange rows, int n, const Inputs& in, int t,
                   int tokens, const Outputs& out) {
  constexpr int kBlocksFew = Type::kGroups < kSlabGroupsFew ? kSlabGroupsFew / Type::kGroups : 1;
  constexpr int kBlocksMany = kSlabGroups / Type::kGroups;
  Slab slab;
  alignas(64) float sums[kTokensPerSlab][kRows];
  __builtin_memset(sums, 0, static_cast<std::size_t>(tokens) * sizeof sums[0]);
  unsigned char copy[kRows * kBlocksMany * Type::kBytes];
  const int count = rows.last - n < kRows ? rows.last - n : kRows;
  const int blocks = weights.cols / (kGroup * Type::kGroups);
  const int slab_blocks = tokens <= kFewTokens ? kBlocksFew : kBlocksMany;
  const std::size_t stride = weights.row_bytes;
  const unsigned char* row = weights.data + static_cast<std::size_t>(n) * stride;
  for (int first = 0; first < blocks; first += slab_blocks) {
    const int taken = blocks - first < slab_blocks ? blocks - first : slab_blocks;
    const unsigned char* at = row + static_cast<std::size_t>(first) * Type::kBytes;
    if (count < kRows) {
      const std::size_t bytes = static_cast<std::size_t>(taken) * Type::kBytes;
      copy_rows(at, stride, count, bytes, copy);
      unpack_slab<Type>(copy, bytes, taken, copy, slab);
    } else {
      unpack_slab<Type>(at, stride, taken, ahead_of<Type>(weights, rows, n, first, at), slab);
    }
    for (int i = 0; i < tokens; i += Words::kTokensAtOnce) {
      const int left = tokens - i;
      const int together = left < Words::kTokensAtOnce ? left : Words::kTokensAtOnce;
      kMultiplySlab<Type>[together - 1](slab, taken * Type::kGroups,
                                        {in, weights.cols, t + i, first * Type::kGroups}, sums + i);
    }
  }
  for (int i = 0; i < tokens; ++i) store_sums(sums[i], count, out, t + i, n);
}

template <class Type>
void quantized_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  for (int n = rows.first; n < rows.last; n += kRows) {
    for (int t = 0; t < in.tokens; t += kTokensPerSlab) {
      const int tokens = in.tokens - t < kTokensPerSlab ? in.tokens - t : kTokensPerSlab;
      multiply_rows<Type>(weights, rows, n, in, t, tokens, out);
    }
  }
}

/// matmul of every weight type.
void matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  switch (weights.type) {
    case WeightType::kF32:
      return dot_matmul<FloatWeights>(weights, rows, in, out);
    case WeightType::kF16:
      return dot_matmul<HalfWeights>(weights, rows, in, out);
    case WeightType::kBF16:
      return dot_matmul<BfloatWeights>(weights, rows, in, out);
    case WeightType::kQ8_0:
      return quantized_matmul<Q8_0>(weights, rows, in, out);
    case WeightType::kQ4_0:
      return quantized_matmul<Q4_0>(weights, rows, in, out);
    case WeightType::kQ4_1:
      return quantized_matmul<Q4_1>(weights, rows, in, out);
    case WeightType::kQ5_0:
      return quantized_matmul<Q5_0>(weights, rows, in, out);
    case WeightType::kQ5_1:
      return quantized_matmul<Q5_1>(weights, rows, in, out);
    case WeightType::kQ4_K:
      return quantized_matmul<Q4_K>(weights, rows, in, out);
    case WeightType::kQ5_K:
      return quantized_matmul<Q5_K>(weights, rows, in, out);
    case WeightType::kQ6_K:
      return quantized_matmul<Q6_K>(weights, rows, in, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
