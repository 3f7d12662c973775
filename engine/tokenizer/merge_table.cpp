#include "engine/tokenizer/merge_table.h"

#include <bit>

namespace efimd::engine {

MergeTable::MergeTable(std::size_t merges) : slots_(std::bit_ceil(2 * merges + 1)) {}

std::uint64_t MergeTable::key_of(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32U | static_cast<std::uint32_t>(right);
}

std::size_t MergeTable::slot_of(std::uint64_t key) const {
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t mixed = key * 0x9E3779B97F4A7C15U;  // 2^64 / the golden ratio
  std::size_t slot = static_cast<std::size_t>(mixed >> 20U) & mask;
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  const std::uint64_t key = key_of(left, right);
  Slot& slot = slots_[slot_of(key)];
  if (slot.key == kFree) slot = {key, merge};
}

MergeTable::Merge MergeTable::find(TokenId left, TokenId right) const {
  return slots_[slot_of(key_of(left, right))].merge;
}

}  // namespace efimd::engine
