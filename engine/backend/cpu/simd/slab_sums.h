#pragma once

// What products of slabs have in common, over the Words of the file that includes this.
#include "engine/backend/cpu/kernels/panels.h"
#include "engine/backend/cpu/simd/simd_inputs.h"

namespace efimd::engine::cpu {
namespace {

constexpr int kSlabsAtOnce = Words::kSlabsAtOnce;

/// One float of each row of the slabs.
using SlabSums = float[kSlabsAtOnce][kRows];

/// Asks L2 for memory that is read soon, some lines at a time: a core has room for few requests,
/// and waits if there are more. Two lines with each group were measured against dozens with each
/// slab. Products of 64 tokens on both cores of a Xeon (AVX-512): Q8_0 1.13, Q4_0 1.07, Q4_K and
/// Q6_K 1.0 to 1.1 times as fast.
class AskedLines {
 public:
  AskedLines(const unsigned char* at, std::size_t bytes, int times)
      : at_(at),
        end_(at + bytes),
        bytes_((bytes / kPanelLine / static_cast<unsigned>(times) + 1) * kPanelLine) {}
  void ask_some() {
    for (const unsigned char* const end = at_ + bytes_; at_ < end && at_ < end_; at_ += kPanelLine)
      __builtin_prefetch(at_, 0, kL2);
  }

 private:
  const unsigned char* at_;
  const unsigned char* end_;
  std::size_t bytes_;  ///< each time
};

}  // namespace
}  // namespace efimd::engine::cpu
