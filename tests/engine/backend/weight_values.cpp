#include "tests/engine/backend/weight_values.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace efimd::test {

using engine::TensorType;
using engine::TensorView;

namespace {

constexpr std::size_t kAlignment = 64;

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

/// binary16 by its definition; normal numbers and zero are all that is written here.
double half(const std::byte* at) {
  const auto bits = get<std::uint16_t>(at);
  const int exponent = bits >> 10 & 31;
  const double fraction = (bits & 1023) / 1024.0;
  const double size =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

/// The half nearest below a positive number of normal size.
std::uint16_t to_half(double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // 0.5 .. 1
  if (exponent < -13) return static_cast<std::uint16_t>(std::ldexp(value, 24));
  return static_cast<std::uint16_t>((exponent + 14) << 10 |
                                    (static_cast<int>(std::ldexp(fraction, 11)) & 1023));
}

int byte_at(const std::byte* block, std::int64_t index) { return static_cast<int>(block[index]); }

int low_bits(int byte, bool upper) { return upper ? byte / 16 : byte % 16; }

int bit_at(const std::byte* bytes, std::int64_t index) {
  return byte_at(bytes, index / 8) >> (index % 8) & 1;
}

/// Six bits of scale (`which` 0) or minimum (1) of group `group` of a superblock.
int group_number(const std::byte* s, std::int64_t group, int which) {
  if (group < 4) return byte_at(s, 4 * which + group) % 64;
  const int low = low_bits(byte_at(s, 4 + group), which == 1);
  return low + byte_at(s, 4 * which + group - 4) / 64 * 16;
}

/// Q4_K (16 bytes before the nibbles) and Q5_K (48, of which 32 are high bits).
double k_element(const std::byte* block, std::int64_t w, std::int64_t nibbles) {
  const std::int64_t group = w / 32;
  int quant = low_bits(byte_at(block, nibbles + group / 2 * 32 + w % 32), group % 2 == 1);
  if (nibbles == 48) quant += 16 * (byte_at(block, 16 + w % 32) >> group & 1);
  return half(block) * group_number(block + 4, group, 0) * quant -
         half(block + 2) * group_number(block + 4, group, 1);
}

double q6_k_element(const std::byte* block, std::int64_t w) {
  const std::int64_t part = w % 128 / 32;
  const int low = low_bits(byte_at(block, w / 128 * 64 + part % 2 * 32 + w % 32), part >= 2);
  const int high = byte_at(block, 128 + w / 128 * 32 + w % 32) >> (2 * part) & 3;
  return half(block + 208) * get<std::int8_t>(block + 192 + w / 16) * (low + 16 * high - 32);
}

/// Weight `w` of a block.
double block_element(TensorType type, const std::byte* block, std::int64_t w) {
  const auto nibble = [&](std::int64_t first) {
    return low_bits(byte_at(block, first + w % 16), w >= 16);
  };
  switch (type) {
    case TensorType::kF32:
      return get<float>(block);
    case TensorType::kF16:
      return half(block);
    case TensorType::kBF16:
      return std::bit_cast<float>(std::uint32_t{get<std::uint16_t>(block)} << 16U);
    case TensorType::kQ8_0:
      return half(block) * get<std::int8_t>(block + 2 + w);
    case TensorType::kQ4_0:
      return half(block) * (nibble(2) - 8);
    case TensorType::kQ4_1:
      return half(block) * nibble(4) + half(block + 2);
    case TensorType::kQ5_0:
      return half(block) * (nibble(6) + 16 * bit_at(block + 2, w) - 16);
    case TensorType::kQ5_1:
      return half(block) * (nibble(8) + 16 * bit_at(block + 4, w)) + half(block + 2);
    case TensorType::kQ4_K:
      return k_element(block, w, 16);
    case TensorType::kQ5_K:
      return k_element(block, w, 48);
    case TensorType::kQ6_K:
      return q6_k_element(block, w);
  }
  return NAN;
}

void fill_floats(std::byte* at, TensorType type, std::int64_t cols, float scale,
                 std::mt19937& random) {
  std::uniform_real_distribution<float> weight(-scale, scale);
  for (std::int64_t k = 0; k < cols; ++k) {
    const float value = weight(random);
    if (type == TensorType::kF32) {
      put(at + 4 * k, value);
    } else if (type == TensorType::kBF16) {
      put(at + 2 * k, static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U));
    } else {
      put(at + 2 * k,
          static_cast<std::uint16_t>(to_half(std::fabs(value)) | (value < 0 ? 0x8000 : 0)));
    }
  }
}

/// The block's scales so that its weights lie within about +-`size`, whatever its other bits are.
void fill_scales(std::byte* block, TensorType type, double size) {
  switch (type) {
    case TensorType::kQ8_0:
      return put(block, to_half(size / 127));
    case TensorType::kQ4_0:
      return put(block, to_half(size / 8));
    case TensorType::kQ5_0:
      return put(block, to_half(size / 16));
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
      put(block, to_half(2 * size / (type == TensorType::kQ4_1 ? 15 : 31)));
      return put(block + 2, static_cast<std::uint16_t>(to_half(size) | 0x8000));
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      put(block, to_half(2 * size / (63 * (type == TensorType::kQ4_K ? 15 : 31))));
      return put(block + 2, to_half(size / 63));
    case TensorType::kQ6_K:
      return put(block + 208, to_half(size / (127 * 32)));
    default:
      return;
  }
}

void fill_row(std::byte* at, TensorType type, std::int64_t cols, float scale,
              std::mt19937& random) {
  if (!is_quantized(type)) return fill_floats(at, type, cols, scale, random);
  const engine::TensorBlock block = tensor_block(type);
  std::uniform_real_distribution<double> size(0.5 * scale, scale);
  for (std::int64_t k = 0; k < cols; k += block.elements, at += block.bytes) {
    for (int i = 0; i < block.bytes; i += 2) put(at + i, static_cast<std::uint16_t>(random()));
    fill_scales(at, type, size(random));
  }
}

}  // namespace

bool is_quantized(TensorType type) { return tensor_block(type).elements > 1; }

TensorView random_tensor(std::deque<std::vector<std::byte>>& storage, TensorType type,
                         std::int64_t rows, std::int64_t cols, float scale, std::mt19937& random,
                         std::size_t offset) {
  TensorView tensor{type, nullptr, rows, cols};
  const std::size_t bytes = static_cast<std::size_t>(rows) * tensor.row_bytes();
  std::vector<std::byte>& memory = storage.emplace_back(bytes + 2 * kAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  std::byte* data = memory.data() + (kAlignment - address % kAlignment) + offset;
  tensor.data = data;
  for (std::int64_t row = 0; row < rows; ++row)
    fill_row(data + static_cast<std::size_t>(row) * tensor.row_bytes(), type, cols, scale, random);
  return tensor;
}

double element(const TensorView& tensor, std::int64_t row, std::int64_t col) {
  const engine::TensorBlock block = tensor_block(tensor.type);
  const std::byte* at = tensor.row(row) + col / block.elements * block.bytes;
  return block_element(tensor.type, at, col % block.elements);
}

}  // namespace efimd::test
