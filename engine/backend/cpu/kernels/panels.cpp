// From the file's blocks (weight_blocks.h) to panels, one row at a time.
#include "engine/backend/cpu/kernels/panels.h"

#include <cstdint>
#include <cstring>

namespace efimd::engine::cpu {

namespace {

constexpr std::uint32_t kLowNibblesOfWord = 0x0F0F0F0FU;
constexpr int kQuadWords = kGroup / 4;  ///< words of a group's weights at a byte each
constexpr int kNibbleWords = kQuadWords / 2;

std::uint32_t word_at(const unsigned char* at) {
  std::uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// One row's words of a stretch of lines.
class RowOfLines {
 public:
  RowOfLines(unsigned char* lines, int row) : at_(lines + 4 * row) {}
  void put(int line, std::uint32_t word) const {
    std::memcpy(at_ + static_cast<std::ptrdiff_t>(line) * kPanelLine, &word, sizeof word);
  }
  /// `count` words of the file one below the other.
  void copy(int line, const unsigned char* from, int count) const {
    for (int i = 0; i < count; ++i) put(line + i, word_at(from + 4 * i));
  }

 private:
  unsigned char* at_;
};

/// Of the groups of a unit: where they and the head begin.
struct Unit {
  unsigned char* head;
  unsigned char* groups;
  std::size_t group_bytes;
  int count;  ///< of groups
  int row;    ///< of the panel

  RowOfLines head_row() const { return {head, row}; }
  RowOfLines group_row(int group) const {
    return {groups + static_cast<std::size_t>(group) * group_bytes, row};
  }
  /// The f16 of group `group`, if a head has one of each row.
  void put_half(int group, const unsigned char* from) const {
    std::memcpy(head + 2 * (group * kPanelRows + row), from, 2);
  }
};

/// Bit i of `bits` to bit i / 4 of byte i % 4.
std::uint32_t bits_by_byte(std::uint32_t bits) {
  std::uint32_t word = 0;
  for (unsigned i = 0; i < 4; ++i) {
    // Every fourth bit, brought together in three steps.
    std::uint32_t some = bits >> i & 0x11111111U;
    some = (some | some >> 3U) & 0x03030303U;
    some = (some | some >> 6U) & 0x000F000FU;
    some = (some | some >> 12U) & 0xFFU;
    word |= some << 8U * i;
  }
  return word;
}

void write_q8_0(const unsigned char* from, const Unit& unit) {
  for (int group = 0; group < unit.count; ++group, from += kQ8_0Bytes) {
    unit.put_half(group, from);
    const RowOfLines out = unit.group_row(group);
    for (int j = 0; j < kQuadWords; ++j) out.put(j, word_at(from + 2 + 4 * j) ^ 0x80808080U);
  }
}

/// Q4_0, Q4_1, Q5_0 and Q5_1: `kScales` f16, perhaps 32 bits, 16 bytes of nibbles.
template <int kBytes, int kScales, bool kBits>
void write_nibbles(const unsigned char* from, const Unit& unit) {
  for (int group = 0; group < unit.count; ++group, from += kBytes) {
    if constexpr (kScales == 1)
      unit.put_half(group, from);
    else
      unit.head_row().put(group, word_at(from));
    const RowOfLines out = unit.group_row(group);
    if constexpr (kBits) out.put(0, bits_by_byte(word_at(from + 2 * kScales)));
    out.copy(kBits ? 1 : 0, from + kBytes - 16, kNibbleWords);
  }
}

/// Takes the low or the high nibbles of 32 bytes. Weights 0-15 of a group become low and 16-31
/// high, as the older types have them.
void write_half_bytes(const unsigned char* from, bool high, int line, const RowOfLines& out) {
  for (int j = 0; j < kNibbleWords; ++j) {
    const unsigned shift = high ? 4 : 0;
    const std::uint32_t first = word_at(from + 4 * j) >> shift & kLowNibblesOfWord;
    const std::uint32_t second = word_at(from + 16 + 4 * j) >> shift & kLowNibblesOfWord;
    out.put(line + j, first | second << 4U);
  }
}

void write_q4_k(const unsigned char* from, const Unit& unit) {
  unit.head_row().copy(0, from, 4);
  for (int group = 0; group < unit.count; ++group)
    write_half_bytes(from + 16 + group / 2 * kGroup, group % 2 == 1, 0, unit.group_row(group));
}

void write_q5_k(const unsigned char* from, const Unit& unit) {
  unit.head_row().copy(0, from, 4);
  for (int group = 0; group < unit.count; ++group) {
    std::uint32_t bits = 0;
    for (unsigned j = 0; j < kQuadWords; ++j)
      bits |= (word_at(from + 16 + 4 * j) >> static_cast<unsigned>(group) & 0x01010101U) << j;
    const RowOfLines out = unit.group_row(group);
    out.put(0, bits);
    write_half_bytes(from + 48 + group / 2 * kGroup, group % 2 == 1, 1, out);
  }
}

void write_q6_k(const unsigned char* from, const Unit& unit) {
  unit.head_row().copy(0, from + 192, 4);
  // The last line of the head is one f16 of each row.
  std::memcpy(unit.head + 4 * kPanelLine + 2 * unit.row, from + 208, 2);
  for (int group = 0; group < unit.count; ++group) {
    const int part = group % 4;  // j of the layout in weight_blocks.h
    const unsigned char* high = from + 128 + group / 4 * kGroup;
    const RowOfLines out = unit.group_row(group);
    for (int line = 0; line < 2; ++line) {
      std::uint32_t bits = 0;
      for (int j = 0; j < kNibbleWords; ++j) {
        const std::uint32_t two = word_at(high + 4 * (4 * line + j)) >> 2 * part & 0x03030303U;
        bits |= two << 2 * j;
      }
      out.put(line, bits);
    }
    write_half_bytes(from + group / 4 * 64 + part % 2 * kGroup, part >= 2, 2, out);
  }
}

/// The facts of a type that writing needs.
struct PanelForm {
  PanelLayout layout;
  void (*write)(const unsigned char* from, const Unit& unit);
};

/// Null: none of this type.
const PanelForm* form_of(WeightType type) {
  static constexpr PanelForm kQ8_0{kQ8_0Panel, write_q8_0};
  static constexpr PanelForm kQ4_0{kQ4_0Panel, write_nibbles<kQ4_0Bytes, 1, false>};
  static constexpr PanelForm kQ4_1{kQ4_1Panel, write_nibbles<kQ4_1Bytes, 2, false>};
  static constexpr PanelForm kQ5_0{kQ5_0Panel, write_nibbles<kQ5_0Bytes, 1, true>};
  static constexpr PanelForm kQ5_1{kQ5_1Panel, write_nibbles<kQ5_1Bytes, 2, true>};
  static constexpr PanelForm kQ4_K{kQ4_KPanel, write_q4_k};
  static constexpr PanelForm kQ5_K{kQ5_KPanel, write_q5_k};
  static constexpr PanelForm kQ6_K{kQ6_KPanel, write_q6_k};
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
    case WeightType::kBF16:
      break;
    case WeightType::kQ8_0:
      return &kQ8_0;
    case WeightType::kQ4_0:
      return &kQ4_0;
    case WeightType::kQ4_1:
      return &kQ4_1;
    case WeightType::kQ5_0:
      return &kQ5_0;
    case WeightType::kQ5_1:
      return &kQ5_1;
    case WeightType::kQ4_K:
      return &kQ4_K;
    case WeightType::kQ5_K:
      return &kQ5_K;
    case WeightType::kQ6_K:
      return &kQ6_K;
  }
  return nullptr;
}

}  // namespace

int panel_count(const Weights& weights) {
  return form_of(weights.type) == nullptr ? 0 : weights.rows / kPanelRows;
}

std::size_t panel_bytes(const Weights& weights) {
  const PanelForm* form = form_of(weights.type);
  if (form == nullptr) return 0;
  const PanelLayout& layout = form->layout;
  const int groups = weights.cols / kGroup;
  const int units = (groups + layout.unit_groups - 1) / layout.unit_groups;
  return kPanelLine *
         (static_cast<std::size_t>(units) * static_cast<std::size_t>(layout.head_lines) +
          static_cast<std::size_t>(groups) * static_cast<std::size_t>(layout.group_lines));
}

void write_panel(const Weights& weights, int panel, unsigned char* out) {
  const PanelForm& form = *form_of(weights.type);
  const PanelLayout& layout = form.layout;
  const int groups = weights.cols / kGroup;
  const std::size_t head_bytes = static_cast<std::size_t>(layout.head_lines) * kPanelLine;
  const std::size_t group_bytes = static_cast<std::size_t>(layout.group_lines) * kPanelLine;
  const unsigned char* rows =
      weights.data + static_cast<std::size_t>(panel) * kPanelRows * weights.row_bytes;
  const std::size_t unit_bytes = weights.row_bytes * static_cast<std::size_t>(layout.unit_groups) /
                                 static_cast<std::size_t>(groups);
  for (int first = 0; first < groups; first += layout.unit_groups) {
    const int left = groups - first;
    const int count = left < layout.unit_groups ? left : layout.unit_groups;
    // A shorter last unit leaves a part of its head, which is read but never used.
    std::memset(out, 0, head_bytes);
    for (int row = 0; row < kPanelRows; ++row)
      form.write(rows + static_cast<std::size_t>(row) * weights.row_bytes,
                 {out, out + head_bytes, group_bytes, count, row});
    out += head_bytes + static_cast<std::size_t>(count) * group_bytes;
    rows += unit_bytes;
  }
}

}  // namespace efimd::engine::cpu
