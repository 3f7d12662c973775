#pragma once

// Quantized weights x int8 inputs, over the Vector and the Words of the file that includes this.
//
// A slab holds as many weight rows as a register has lanes, one row per lane, unpacked from the
// file's blocks (simd_unpack.h). It stays in L1 and is multiplied with all tokens of the step. So
// weights come from memory once per step, and are unpacked once. Each lane gets a run of the call's
// rows and reads them in order. Against neighbouring rows in neighbouring lanes, Q8_0 with 1024
// columns, two cores of an EPYC (Zen 4): 15 -> 30 GB/s.
//
//   x       int8 [T][cols], four of them broadcast to all rows
//
// The sum over weights that share a scale is exact, in integers. Then sum += float(products) *
// (w_scale * x_scale), sum -= minimum * total, in the order of the groups, one lane per row, for
// any number of tokens.
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/simd/simd_dot.h"
#include "engine/backend/cpu/simd/simd_inputs.h"
#include "engine/backend/cpu/simd/simd_panel_slabs.h"
#include "engine/backend/cpu/simd/simd_rows.h"
#include "engine/backend/cpu/simd/simd_unpack.h"

namespace efimd::engine::cpu {
namespace {

// At few tokens memory is the limit: short slabs keep it busy during the product. Against slabs of
// 32 groups, AVX-512, one core of a busy Xeon (Emerald Rapids, 2 cores, Q8_0, cols 4864): 14.2 ->
// 18.5 GB/s at one token, 10.5 -> 15 at four.
constexpr int kFewTokens = 16;
constexpr int kSlabGroupsFew = 4;
constexpr int kAheadGroups = 16;  // of prefetch, in the order of reading
constexpr std::size_t kCacheLine = 64;

/// Prefetches further parts of R rows, line by line in the order of reading, each once.
class Ahead {
 public:
  Ahead(const unsigned char* row, std::size_t stride, std::size_t begin)
      : row_(row), stride_(stride), line_(begin) {}
  /// `count` lines, but none from byte `end` of a row on. After the last row this reads nothing: a
  /// prefetch past the mapping is harmless.
  void ask_some(int count, std::size_t end) {
    for (; count > 0 && line_ < end; --count) {
      __builtin_prefetch(row_ + next_ * stride_ + line_);
      if (++next_ < kRows) continue;
      next_ = 0;
      line_ += kCacheLine;
    }
  }

 private:
  const unsigned char* row_;
  std::size_t stride_;
  std::size_t line_;
  std::size_t next_ = 0;  ///< row
};

/// The part of it that is requested during a slab's product, so that memory goes on reading
/// meanwhile. Against asking for all of it while unpacking, Q8_0, two busy cores of an EPYC (Zen
/// 4): 16.5 -> 18.3 GB/s at 8 tokens, 10.2 -> 11.9 at 16.
struct AheadShare {
  Ahead* ahead;
  int lines;  ///< with each group
  std::size_t end;
};

/// sums[i][row] += slab * x[i] for N tokens.
template <class Type, int N>
void multiply_slab(const Slab& slab, int groups, const SlabInputs& in, const AheadShare& share,
                   float (*sums)[kRows]) {
  using Products = Words::Products<Type::kTop>;
  constexpr int kPartQuads = kQuads / Type::kParts;
  Reg acc[N];
  // Unrolled, as all loops over tokens are, because arrays of registers that a loop indexes live in
  // memory.
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) acc[i] = Vector::load(sums[i]);
  for (int group = 0; group < groups; ++group) {
    share.ahead->ask_some(share.lines, share.end);
    const std::int8_t* x = in.x + group * kGroup;
    const auto at = [&](int i) {
      return static_cast<std::size_t>(i) * in.group_stride + static_cast<std::size_t>(group);
    };
    for (int part = 0; part < Type::kParts; ++part) {
      // Quads outside, tokens inside. So neighbours in the instruction stream belong to different
      // sums, and that hides the latency of a product.
      Products products[N];
#pragma GCC unroll 8
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
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) Vector::store(sums[i], acc[i]);
}

using MultiplySlab = void (*)(const Slab&, int groups, const SlabInputs&, const AheadShare&,
                              float (*sums)[kRows]);
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

/// The rows of a matrix that the lanes of a register work on: lane r has row first + r * step.
struct Lanes {
  int first;
  int step;
  int count;
};

/// `blocks` blocks of R rows from `at`.
template <class Type>
void unpack_slab(const unsigned char* at, std::size_t stride, int blocks, Slab& slab) {
  for (int block = 0; block < blocks; ++block)
    Type::unpack(at + static_cast<std::size_t>(block) * Type::kBytes, stride, slab,
                 block * Type::kGroups);
}

/// Copies `bytes` bytes of the last rows, so that a slab can be unpacked from R rows even if fewer
/// are left.
inline void copy_rows(const unsigned char* at, std::size_t stride, int rows, std::size_t bytes,
                      unsigned char* copy) {
  __builtin_memset(copy, 0, kRows * bytes);
  for (int r = 0; r < rows; ++r)
    __builtin_memcpy(copy + static_cast<std::size_t>(r) * bytes,
                     at + static_cast<std::size_t>(r) * stride, bytes);
}

/// The rows of some lanes, for tokens t .. t + tokens - 1 (at most 64).
template <class Type>
void multiply_rows(const Weights& weights, const Lanes& lanes, const Inputs& in, int t, int tokens,
                   const Outputs& out) {
  constexpr int kBlocksFew = Type::kGroups < kSlabGroupsFew ? kSlabGroupsFew / Type::kGroups : 1;
  constexpr int kBlocksMany = kSlabGroups / Type::kGroups;
  Slab slab;
  alignas(64) float sums[kTokensPerSlab][kRows];
  __builtin_memset(sums, 0, static_cast<std::size_t>(tokens) * sizeof sums[0]);
  unsigned char copy[kRows * kBlocksMany * Type::kBytes];
  const int blocks = weights.cols / (kGroup * Type::kGroups);
  const int slab_blocks = tokens <= kFewTokens ? kBlocksFew : kBlocksMany;
  const std::size_t stride = static_cast<std::size_t>(lanes.step) * weights.row_bytes;
  const unsigned char* row =
      weights.data + static_cast<std::size_t>(lanes.first) * weights.row_bytes;
  constexpr std::size_t kAhead =
      static_cast<std::size_t>(kAheadGroups) / Type::kGroups * Type::kBytes;
  Ahead ahead(row, stride, kAhead);
  const int calls = (tokens + Words::kTokensAtOnce - 1) / Words::kTokensAtOnce;
  for (int first = 0; first < blocks; first += slab_blocks) {
    const int taken = blocks - first < slab_blocks ? blocks - first : slab_blocks;
    const std::size_t end = static_cast<std::size_t>(first + taken) * Type::kBytes + kAhead;
    const int lines =
        static_cast<int>(static_cast<std::size_t>(taken) * Type::kBytes * kRows / kCacheLine);
    const AheadShare share{&ahead, lines / (taken * Type::kGroups * calls) + 1, end};
    const unsigned char* at = row + static_cast<std::size_t>(first) * Type::kBytes;
    if (lanes.count < kRows) {
      const std::size_t bytes = static_cast<std::size_t>(taken) * Type::kBytes;
      copy_rows(at, stride, lanes.count, bytes, copy);
      unpack_slab<Type>(copy, bytes, taken, slab);
    } else {
      unpack_slab<Type>(at, stride, taken, slab);
    }
    for (int i = 0; i < tokens; i += Words::kTokensAtOnce) {
      const int left = tokens - i;
      const int together = left < Words::kTokensAtOnce ? left : Words::kTokensAtOnce;
      kMultiplySlab<Type>[together - 1](slab, taken * Type::kGroups,
                                        {in, weights.cols, t + i, first * Type::kGroups}, share,
                                        sums + i);
    }
  }
  for (int i = 0; i < tokens; ++i)
    for (int r = 0; r < lanes.count; ++r)
      store_product(out, t + i, lanes.first + r * lanes.step, sums[i][r]);
}

template <class Type>
void multiply_lanes(const Weights& weights, const Lanes& lanes, const Inputs& in,
                    const Outputs& out) {
  for (int t = 0; t < in.tokens; t += kTokensPerSlab) {
    const int tokens = in.tokens - t < kTokensPerSlab ? in.tokens - t : kTokensPerSlab;
    multiply_rows<Type>(weights, lanes, in, t, tokens, out);
  }
}

/// The distance between the rows of R lanes, of `rows` rows (at least R). It is as large as the
/// rows allow, so that each lane reads its rows in order and memory sees R long streams. But the
/// streams must not meet in the same lines of the first-level cache.
inline int step_of(int rows, std::size_t row_bytes) {
  constexpr std::size_t kAliasBytes = 4096;
  constexpr std::size_t kApartBytes = 256;  // of two lanes side by side, modulo kAliasBytes
  for (int step = rows / kRows; step > 1; --step) {
    const std::size_t apart = static_cast<std::size_t>(step) * row_bytes % kAliasBytes;
    if (apart >= kApartBytes && apart <= kAliasBytes - kApartBytes && apart != kAliasBytes / 2)
      return step;
  }
  return 1;
}

template <class Type>
void quantized_matmul(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  int n = rows.first;
  while (rows.last - n >= kRows) {
    const int step = step_of(rows.last - n, weights.row_bytes);
    for (int i = 0; i < step; ++i) multiply_lanes<Type>(weights, {n + i, step, kRows}, in, out);
    n += step * kRows;
  }
  if (n < rows.last) multiply_lanes<Type>(weights, {n, 1, rows.last - n}, in, out);
}

/// Whole panels in place, the other rows from the file.
template <class Type>
void product(const Weights& weights, RowRange rows, const Inputs& in, const Outputs& out) {
  const RowRange panels = panels_of(weights, rows);
  if (panels.first == panels.last) return quantized_matmul<Type>(weights, rows, in, out);
  panel_matmul<Type>(weights, panels, in, out);
  if (rows.first < panels.first)
    quantized_matmul<Type>(weights, {rows.first, panels.first}, in, out);
  if (panels.last < rows.last) quantized_matmul<Type>(weights, {panels.last, rows.last}, in, out);
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
      return product<Q8_0>(weights, rows, in, out);
    case WeightType::kQ4_0:
      return product<Q4_0>(weights, rows, in, out);
    case WeightType::kQ4_1:
      return product<Q4_1>(weights, rows, in, out);
    case WeightType::kQ5_0:
      return product<Q5_0>(weights, rows, in, out);
    case WeightType::kQ5_1:
      return product<Q5_1>(weights, rows, in, out);
    case WeightType::kQ4_K:
      return product<Q4_K>(weights, rows, in, out);
    case WeightType::kQ5_K:
      return product<Q5_K>(weights, rows, in, out);
    case WeightType::kQ6_K:
      return product<Q6_K>(weights, rows, in, out);
  }
}

}  // namespace
}  // namespace efimd::engine::cpu
