// One function for each layout of weight_blocks.h, all from the same three steps: find the block,
// find the bits, find the scale.
#include "engine/backend/cpu/kernels/weight_blocks.h"

#include <cstddef>
#include <cstring>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/unaligned.h"

namespace efimd::engine::cpu {

namespace {

constexpr int kRunsOfGroup = kGroup / kRunWeights;
constexpr int kRunsOfSuperblock = kSuperblock / kRunWeights;

float read_half(const unsigned char* at) { return half_to_float(read<std::uint16_t>(at)); }

/// Block `index` of a row whose blocks have `bytes` bytes.
const unsigned char* block_of(const unsigned char* row, int index, int bytes) {
  return row + static_cast<std::size_t>(index) * static_cast<std::size_t>(bytes);
}

/// The low or the high four bits of a byte.
int nibble(unsigned char byte, bool high) { return high ? byte >> 4 : byte & 15; }

WeightRun read_q8_0(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfGroup, kQ8_0Bytes);
  WeightRun result{read_half(block), 0.0F, {}};
  std::memcpy(result.quants, block + 2 + run % kRunsOfGroup * kRunWeights, kRunWeights);
  return result;
}

/// The four types of 32 weights whose low four bits are 16 bytes at `quants`. Bit 4 is at `high`
/// where there is one; `center` is subtracted.
WeightRun read_nibbles(const unsigned char* quants, std::uint32_t high, int center, int half) {
  WeightRun result{};
  for (int i = 0; i < kRunWeights; ++i) {
    const auto bit = static_cast<int>(high >> (half * kRunWeights + i) & 1U);
    result.quants[i] = static_cast<std::int8_t>(nibble(quants[i], half == 1) + 16 * bit - center);
  }
  return result;
}

WeightRun read_q4_0(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfGroup, kQ4_0Bytes);
  WeightRun result = read_nibbles(block + 2, 0, 8, run % kRunsOfGroup);
  result.scale = read_half(block);
  return result;
}

WeightRun read_q4_1(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfGroup, kQ4_1Bytes);
  WeightRun result = read_nibbles(block + 4, 0, 0, run % kRunsOfGroup);
  result.scale = read_half(block);
  result.minimum = -read_half(block + 2);
  return result;
}

WeightRun read_q5_0(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfGroup, kQ5_0Bytes);
  WeightRun result =
      read_nibbles(block + 6, read<std::uint32_t>(block + 2), 16, run % kRunsOfGroup);
  result.scale = read_half(block);
  return result;
}

WeightRun read_q5_1(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfGroup, kQ5_1Bytes);
  WeightRun result = read_nibbles(block + 8, read<std::uint32_t>(block + 4), 0, run % kRunsOfGroup);
  result.scale = read_half(block);
  result.minimum = -read_half(block + 2);
  return result;
}

/// Scale and minimum of group `group` of a Q4_K or Q5_K block.
WeightRun group_of_superblock(const unsigned char* block, int group) {
  const unsigned char* s = block + 4;
  const int lower = group % 4;
  const int scale = group < 4 ? s[lower] & 63 : (s[8 + lower] & 15) | (s[lower] >> 6) << 4;
  const int minimum = group < 4 ? s[4 + lower] & 63 : s[8 + lower] >> 4 | (s[4 + lower] >> 6) << 4;
  return {read_half(block) * static_cast<float>(scale),
          read_half(block + 2) * static_cast<float>(minimum),
          {}};
}

WeightRun read_q4_k(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfSuperblock, kQ4_KBytes);
  const int first = run % kRunsOfSuperblock * kRunWeights;  // of the block's weights
  const int group = first / kGroup;
  const unsigned char* quants = block + 16 + group / 2 * kGroup + first % kGroup;
  WeightRun result = group_of_superblock(block, group);
  for (int i = 0; i < kRunWeights; ++i)
    result.quants[i] = static_cast<std::int8_t>(nibble(quants[i], group % 2 == 1));
  return result;
}

WeightRun read_q5_k(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfSuperblock, kQ5_KBytes);
  const int first = run % kRunsOfSuperblock * kRunWeights;
  const int group = first / kGroup;
  const unsigned char* high = block + 16 + first % kGroup;
  const unsigned char* quants = block + 48 + group / 2 * kGroup + first % kGroup;
  WeightRun result = group_of_superblock(block, group);
  for (int i = 0; i < kRunWeights; ++i) {
    const int bit = high[i] >> group & 1;
    result.quants[i] = static_cast<std::int8_t>(nibble(quants[i], group % 2 == 1) + 16 * bit);
  }
  return result;
}

WeightRun read_q6_k(const unsigned char* row, int run) {
  const unsigned char* block = block_of(row, run / kRunsOfSuperblock, kQ6_KBytes);
  const int first = run % kRunsOfSuperblock * kRunWeights;
  const int half = first / 128;
  const int part = first % 128 / kGroup;  // j of the layout
  const unsigned char* quants = block + half * 64 + part % 2 * kGroup + first % kGroup;
  const unsigned char* high = block + 128 + half * kGroup + first % kGroup;
  const auto scale = static_cast<std::int8_t>(block[192 + first / kRunWeights]);
  WeightRun result{read_half(block + 208) * static_cast<float>(scale), 0.0F, {}};
  for (int i = 0; i < kRunWeights; ++i) {
    const int upper = high[i] >> (2 * part) & 3;
    result.quants[i] = static_cast<std::int8_t>(nibble(quants[i], part >= 2) + 16 * upper - 32);
  }
  return result;
}

}  // namespace

bool is_quantized(WeightType type) {
  return type != WeightType::kF32 && type != WeightType::kF16 && type != WeightType::kBF16;
}

WeightRun read_run(WeightType type, const unsigned char* row, int run) {
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      break;
    case WeightType::kQ8_0:
      return read_q8_0(row, run);
    case WeightType::kQ4_0:
      return read_q4_0(row, run);
    case WeightType::kQ4_1:
      return read_q4_1(row, run);
    case WeightType::kQ5_0:
      return read_q5_0(row, run);
    case WeightType::kQ5_1:
      return read_q5_1(row, run);
    case WeightType::kQ4_K:
      return read_q4_k(row, run);
    case WeightType::kQ5_K:
      return read_q5_k(row, run);
    case WeightType::kQ6_K:
      return read_q6_k(row, run);
  }
  return {};
}

}  // namespace efimd::engine::cpu
