// Weights to bytes, the plain way: written from the layouts for tests, and never shared with what
// reads them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <stdexcept>

#include "tests/support/model_writer.h"
#include "tests/support/put.h"

namespace efimd::test {
namespace {

using engine::TensorType;

constexpr std::size_t kBlock = 32;
constexpr std::size_t kSuperblock = 256;

std::uint16_t to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const float magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (!(magnitude < 65520.0F)) return sign | 0x7C00U;
  // Below 2^-14 halves are multiples of 2^-24; above, of 2^(exponent - 10).
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int step = std::max(exponent - 11, -24);
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, -step)));
  return static_cast<std::uint16_t>(sign + (static_cast<std::uint32_t>(step + 24) << 10) + units);
}

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

/// The level nearest to value / scale, from `low` to `high`; 0 if there is no scale.
int level(float value, float scale, int low, int high) {
  if (scale == 0) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::nearbyint(value / scale)), low, high);
}

/// The value of largest magnitude, with its sign.
float peak(std::span<const float> values) {
  return *std::max_element(values.begin(), values.end(),
                           [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

void put_q8_0(std::string& out, std::span<const float> block) {
  const float scale = std::fabs(peak(block)) / 127.0F;
  put(out, to_f16(scale));
  for (const float value : block)
    put(out, static_cast<std::int8_t>(level(value, scale, -127, 127)));
}

/// Bit 4 of 32 levels, then bits 0-3: byte i holds level i low, level 16 + i high.
void put_levels(std::string& out, const std::array<int, kBlock>& levels, int bits) {
  std::uint32_t high = 0;
  for (std::size_t i = 0; i < kBlock; ++i) high |= static_cast<std::uint32_t>(levels[i] >> 4) << i;
  if (bits == 5) put(out, high);
  for (std::size_t i = 0; i < kBlock / 2; ++i)
    put(out, static_cast<std::uint8_t>((levels[i] & 15) | (levels[i + kBlock / 2] & 15) << 4));
}

/// Q4_0 and Q5_0: levels around the middle; the value of largest magnitude is the lowest level.
void put_centered(std::string& out, std::span<const float> block, int bits) {
  const int middle = 1 << (bits - 1);
  const float scale = -peak(block) / static_cast<float>(middle);
  std::array<int, kBlock> levels{};
  for (std::size_t i = 0; i < kBlock; ++i)
    levels[i] = level(block[i], scale, -middle, middle - 1) + middle;
  put(out, to_f16(scale));
  put_levels(out, levels, bits);
}

/// Q4_1 and Q5_1: levels from the minimum up.
void put_from_minimum(std::string& out, std::span<const float> block, int bits) {
  const int top = (1 << bits) - 1;
  const auto [low, high] = std::minmax_element(block.begin(), block.end());
  const float scale = (*high - *low) / static_cast<float>(top);
  std::array<int, kBlock> levels{};
  for (std::size_t i = 0; i < kBlock; ++i) levels[i] = level(block[i] - *low, scale, 0, top);
  put(out, to_f16(scale));
  put(out, to_f16(*low));
  put_levels(out, levels, bits);
}

/// Six-bit scales and minimums of a superblock's eight groups, and what they are multiples of.
struct GroupScales {
  std::array<int, 8> scale{}, minimum{};
  float scale_unit = 0;
  float minimum_unit = 0;
};

GroupScales group_scales(std::span<const float> block, int top) {
  std::array<float, 8> scale{};
  std::array<float, 8> minimum{};
  for (std::size_t group = 0; group < 8; ++group) {
    const auto part = block.subspan(group * kBlock, kBlock);
    const auto [low, high] = std::minmax_element(part.begin(), part.end());
    minimum[group] = std::max(-*low, 0.0F);  // a minimum above zero cannot be written
    scale[group] = std::max(*high + minimum[group], 0.0F) / static_cast<float>(top);
  }
  GroupScales result;
  result.scale_unit = *std::max_element(scale.begin(), scale.end()) / 63.0F;
  result.minimum_unit = *std::max_element(minimum.begin(), minimum.end()) / 63.0F;
  for (std::size_t group = 0; group < 8; ++group) {
    result.scale[group] = level(scale[group], result.scale_unit, 0, 63);
    result.minimum[group] = level(minimum[group], result.minimum_unit, 0, 63);
  }
  return result;
}

void put_group_scales(std::string& out, const GroupScales& scales) {
  const auto low = [&](const std::array<int, 8>& values, std::size_t i) {
    put(out, static_cast<std::uint8_t>(values[i] | (values[i + 4] >> 4) << 6));
  };
  for (std::size_t i = 0; i < 4; ++i) low(scales.scale, i);
  for (std::size_t i = 0; i < 4; ++i) low(scales.minimum, i);
  for (std::size_t i = 4; i < 8; ++i)
    put(out, static_cast<std::uint8_t>((scales.scale[i] & 15) | (scales.minimum[i] & 15) << 4));
}

/// Q4_K and Q5_K.
void put_k(std::string& out, std::span<const float> block, int bits) {
  const int top = (1 << bits) - 1;
  const GroupScales scales = group_scales(block, top);
  std::array<int, kSuperblock> levels{};
  for (std::size_t i = 0; i < kSuperblock; ++i) {
    const std::size_t group = i / kBlock;
    const float scale = scales.scale_unit * static_cast<float>(scales.scale[group]);
    const float minimum = scales.minimum_unit * static_cast<float>(scales.minimum[group]);
    levels[i] = level(block[i] + minimum, scale, 0, top);
  }
  put(out, to_f16(scales.scale_unit));
  put(out, to_f16(scales.minimum_unit));
  put_group_scales(out, scales);
  for (std::size_t i = 0; bits == 5 && i < kBlock; ++i) {
    int high = 0;
    for (std::size_t group = 0; group < 8; ++group)
      high |= levels[group * kBlock + i] >> 4 << group;
    put(out, static_cast<std::uint8_t>(high));
  }
  for (std::size_t pair = 0; pair < kSuperblock; pair += 2 * kBlock)
    for (std::size_t i = pair; i < pair + kBlock; ++i)
      put(out, static_cast<std::uint8_t>((levels[i] & 15) | (levels[i + kBlock] & 15) << 4));
}

void put_q6_k(std::string& out, std::span<const float> block) {
  std::array<float, 16> wanted{};
  for (std::size_t group = 0; group < 16; ++group)
    wanted[group] = -peak(block.subspan(group * 16, 16)) / 32.0F;
  const float unit = std::fabs(peak(wanted)) / 127.0F;
  std::array<int, kSuperblock> levels{};
  std::string scales;
  for (std::size_t group = 0; group < 16; ++group) {
    const int scale = level(wanted[group], unit, -127, 127);
    put(scales, static_cast<std::int8_t>(scale));
    for (std::size_t i = group * 16; i < (group + 1) * 16; ++i)
      levels[i] = level(block[i], unit * static_cast<float>(scale), -32, 31) + 32;
  }
  // Each half of 128 levels: byte i of 64 holds level i low and level 64 + i high.
  for (std::size_t half = 0; half < kSuperblock; half += 128)
    for (std::size_t i = half; i < half + 64; ++i)
      put(out, static_cast<std::uint8_t>((levels[i] & 15) | (levels[i + 64] & 15) << 4));
  for (std::size_t half = 0; half < kSuperblock; half += 128)
    for (std::size_t i = half; i < half + 32; ++i)
      put(out, static_cast<std::uint8_t>(levels[i] >> 4 | levels[i + 32] >> 4 << 2 |
                                         levels[i + 64] >> 4 << 4 | levels[i + 96] >> 4 << 6));
  out += scales;
  put(out, to_f16(unit));
}

void put_block(std::string& out, std::span<const float> block, TensorType type) {
  switch (type) {
    case TensorType::kF32:
      return put(out, block[0]);
    case TensorType::kF16:
      return put(out, to_f16(block[0]));
    case TensorType::kBF16:
      return put(out, to_bf16(block[0]));
    case TensorType::kQ8_0:
      return put_q8_0(out, block);
    case TensorType::kQ4_0:
      return put_centered(out, block, 4);
    case TensorType::kQ4_1:
      return put_from_minimum(out, block, 4);
    case TensorType::kQ5_0:
      return put_centered(out, block, 5);
    case TensorType::kQ5_1:
      return put_from_minimum(out, block, 5);
    case TensorType::kQ4_K:
      return put_k(out, block, 4);
    case TensorType::kQ5_K:
      return put_k(out, block, 5);
    case TensorType::kQ6_K:
      return put_q6_k(out, block);
  }
}

}  // namespace

std::string encode_tensor(std::span<const float> values, TensorType type) {
  const auto block = static_cast<std::size_t>(engine::tensor_block(type).elements);
  if (values.size() % block != 0)
    throw std::logic_error(std::string(engine::tensor_type_name(type)) + " wants a multiple of " +
                           std::to_string(block));
  std::string out;
  for (std::size_t at = 0; at < values.size(); at += block)
    put_block(out, values.subspan(at, block), type);
  return out;
}

TensorType type_that_fits(TensorType type, int cols) {
  if (cols % engine::tensor_block(type).elements == 0) return type;
  switch (type) {
    case TensorType::kQ4_K:
      return TensorType::kQ5_0;
    case TensorType::kQ5_K:
      return TensorType::kQ5_1;
    case TensorType::kQ6_K:
      return TensorType::kQ8_0;
    default:
      return type;
  }
}

}  // namespace efimd::test
