#include "engine/backend/gpu/packed_weights.h"

#include <algorithm>
#include <cstring>

#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/cpu/kernels/weight_blocks.h"

namespace efimd::engine::gpu {

using kernels::Packed;
using kernels::RowLayout;

namespace {

constexpr std::size_t kGroup = 32;
constexpr std::size_t kSuper = 256;

/// The parts of a quantized type.
struct Parts {
  cpu::WeightType file_type;
  int center;             ///< what the reader of the file's blocks subtracted
  std::size_t low_words;  ///< a group
  std::size_t high_bits;  ///< a weight
  enum class Scales { kHalf, kHalfPair, kBytePair } scales;
};

Parts parts_of(Packed type) {
  using enum Parts::Scales;
  using cpu::WeightType;
  switch (type) {
    case Packed::kQ8_0:
      return {WeightType::kQ8_0, 0, 8, 0, kHalf};
    case Packed::kQ4_0:
      return {WeightType::kQ4_0, 8, 4, 0, kHalf};
    case Packed::kQ4_1:
      return {WeightType::kQ4_1, 0, 4, 0, kHalfPair};
    case Packed::kQ5_0:
      return {WeightType::kQ5_0, 16, 4, 1, kHalf};
    case Packed::kQ5_1:
      return {WeightType::kQ5_1, 0, 4, 1, kHalfPair};
    case Packed::kQ4_K:
      return {WeightType::kQ4_K, 0, 4, 0, kBytePair};
    case Packed::kQ5_K:
      return {WeightType::kQ5_K, 0, 4, 1, kBytePair};
    case Packed::kQ6_K:
      return {WeightType::kQ6_K, 32, 4, 2, kBytePair};
    default:
      return {WeightType::kF32, 0, 0, 0, kHalf};
  }
}

std::size_t rounded(std::size_t value, std::size_t to) { return (value + to - 1) / to * to; }

std::uint32_t read_u16(const std::byte* at) {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint32_t byte_at(const std::byte* at) { return std::to_integer<std::uint32_t>(*at); }

/// Quants of a group, not centered, 0 .. 255 (Q8_0: two's complement).
void pack_quants(const Parts& parts, const std::uint8_t* quants, std::uint32_t* low,
                 std::uint32_t* high) {
  for (std::size_t w = 0; w < kGroup; ++w) {
    const std::uint32_t quant = quants[w];
    if (parts.low_words == 8) {
      low[w / 4] |= quant << (8 * (w % 4));
      continue;
    }
    low[w / 8] |= (quant & 15U) << (8 * (w % 4) + 4 * (w / 4 % 2));
    const std::size_t quad = w / 4;
    if (parts.high_bits == 1) high[0] |= (quant >> 4U & 1U) << (8 * (w % 4) + quad);
    if (parts.high_bits == 2)
      high[quad / 4] |= (quant >> 4U & 3U) << (8 * (w % 4) + 2 * (quad % 4));
  }
}

/// The bits that a group's scales take in the file, as the layout has them.
std::uint32_t scale_bits(Packed type, const std::byte* block, std::size_t group) {
  switch (type) {
    case Packed::kQ8_0:
    case Packed::kQ4_0:
    case Packed::kQ5_0:
      return read_u16(block);
    case Packed::kQ4_1:
    case Packed::kQ5_1:
      return read_u16(block) | read_u16(block + 2) << 16U;
    case Packed::kQ6_K:
      return byte_at(block + 192 + 2 * group) | byte_at(block + 193 + 2 * group) << 8U;
    default:
      break;
  }
  // Q4_K and Q5_K: eight scales and minimums of 6 bits in 12 bytes, see weight_blocks.h.
  const std::byte* s = block + 4;
  const std::size_t lower = group % 4;
  const std::uint32_t both = byte_at(s + 8 + lower);
  const std::uint32_t scale = byte_at(s + lower);
  const std::uint32_t minimum = byte_at(s + 4 + lower);
  if (group < 4) return (scale & 63U) | (minimum & 63U) << 8U;
  return ((both & 15U) | (scale >> 6U) << 4U) | ((both >> 4U) | (minimum >> 6U) << 4U) << 8U;
}

std::uint32_t super_bits(Packed type, const std::byte* block) {
  if (type == Packed::kQ6_K) return read_u16(block + 208);
  return read_u16(block) | read_u16(block + 2) << 16U;
}

void pack_quantized(const TensorView& tensor, std::int64_t row, const RowLayout& layout,
                    std::uint32_t* words) {
  const Packed type = packed_type(tensor.type);
  const Parts parts = parts_of(type);
  const TensorBlock of_block = tensor_block(tensor.type);
  const std::byte* data = tensor.row(row);
  const auto* bytes = reinterpret_cast<const unsigned char*>(data);
  const auto groups = static_cast<std::size_t>(tensor.cols) / kGroup;
  const std::size_t groups_of_block = static_cast<std::size_t>(of_block.elements) / kGroup;
  for (std::size_t group = 0; group < groups; ++group) {
    std::uint8_t quants[kGroup];
    for (std::size_t half = 0; half < 2; ++half) {
      const cpu::WeightRun run =
          cpu::read_run(parts.file_type, bytes, static_cast<int>(2 * group + half));
      for (std::size_t i = 0; i < cpu::kRunWeights; ++i)
        quants[half * cpu::kRunWeights + i] =
            static_cast<std::uint8_t>(run.quants[i] + parts.center);
    }
    pack_quants(parts, quants, words + group * parts.low_words,
                words + layout.high_at + group * parts.high_bits);
    const std::byte* block =
        data + group / groups_of_block * static_cast<std::size_t>(of_block.bytes);
    const std::uint32_t scale = scale_bits(type, block, group % groups_of_block);
    if (parts.scales == Parts::Scales::kHalfPair)
      words[layout.scale_at + group] = scale;
    else
      words[layout.scale_at + group / 2] |= scale << (16 * (group % 2));
    if (parts.scales == Parts::Scales::kBytePair && group % groups_of_block == 0)
      words[layout.super_at + group / groups_of_block] = super_bits(type, block);
  }
}

}  // namespace

Packed packed_type(TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return Packed::kF32;
    case TensorType::kF16:
      return Packed::kF16;
    case TensorType::kBF16:
      return Packed::kBF16;
    case TensorType::kQ8_0:
      return Packed::kQ8_0;
    case TensorType::kQ4_0:
      return Packed::kQ4_0;
    case TensorType::kQ4_1:
      return Packed::kQ4_1;
    case TensorType::kQ5_0:
      return Packed::kQ5_0;
    case TensorType::kQ5_1:
      return Packed::kQ5_1;
    case TensorType::kQ4_K:
      return Packed::kQ4_K;
    case TensorType::kQ5_K:
      return Packed::kQ5_K;
    case TensorType::kQ6_K:
      return Packed::kQ6_K;
  }
  return Packed::kF32;
}

bool is_quantized(Packed type) { return type >= Packed::kQ8_0; }

RowLayout row_layout(TensorType of, std::int64_t count) {
  const Packed type = packed_type(of);
  const auto cols = static_cast<std::size_t>(count);
  RowLayout layout{};
  std::size_t words = type == Packed::kF32 ? cols : (cols + 1) / 2;
  if (is_quantized(type)) {
    const Parts parts = parts_of(type);
    const std::size_t groups = cols / kGroup;
    words = groups * parts.low_words;
    layout.high_at = static_cast<kernels::u32>(words);
    words += groups * parts.high_bits;
    layout.scale_at = static_cast<kernels::u32>(words);
    words += parts.scales == Parts::Scales::kHalfPair ? groups : (groups + 1) / 2;
    layout.super_at = static_cast<kernels::u32>(words);
    if (parts.scales == Parts::Scales::kBytePair) words += cols / kSuper;
  }
  // Kernels read eight elements at a time.
  layout.row_words = static_cast<kernels::u32>(rounded(words, type == Packed::kF32 ? 8 : 4));
  return layout;
}

void pack_row(const TensorView& tensor, std::int64_t row, const RowLayout& layout,
              std::span<std::uint32_t> words) {
  std::ranges::fill(words, 0U);
  if (is_quantized(packed_type(tensor.type)))
    pack_quantized(tensor, row, layout, words.data());
  else
    std::memcpy(words.data(), tensor.row(row), tensor.row_bytes());
}

}  // namespace efimd::engine::gpu
