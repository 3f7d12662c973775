#include "engine/tokenizer/symbol_merger.h"

#include <algorithm>
#include <bit>

namespace efimd::engine {
namespace {

constexpr std::size_t kShortSymbolsMax = 48;
constexpr std::int32_t kNone = -1;

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

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

void SymbolMerger::merge(const MergeTable& merges) {
  if (symbols.size() <= kShortSymbolsMax) return merge_short(merges);
  merge_long(merges);
}

void SymbolMerger::merge_short(const MergeTable& merges) {
  const auto pair = [&](std::size_t i) {
    return merges.find(symbols[i].token, symbols[i + 1].token);
  };
  pairs_.clear();
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) pairs_.push_back(pair(i));
  while (!pairs_.empty()) {
    // kNoRank is -1, the largest as unsigned.
    const auto best = std::min_element(pairs_.begin(), pairs_.end(), [](auto& a, auto& b) {
      return static_cast<std::uint32_t>(a.rank) < static_cast<std::uint32_t>(b.rank);
    });
    if (best->rank == MergeTable::kNoRank) return;
    const std::ptrdiff_t left = best - pairs_.begin();
    const auto index = static_cast<std::size_t>(left);
    symbols[index].token = best->merged;
    symbols.erase(symbols.begin() + left + 1);
    pairs_.erase(best);
    if (index > 0) pairs_[index - 1] = pair(index - 1);
    if (index < pairs_.size()) pairs_[index] = pair(index);
  }
}

void SymbolMerger::offer(const MergeTable& merges, std::int32_t left, std::int32_t right) {
  if (left == kNone || right == kNone) return;
  const TokenId left_token = symbols[at(left)].token;
  const TokenId right_token = symbols[at(right)].token;
  const MergeTable::Merge merge = merges.find(left_token, right_token);
  if (merge.rank == MergeTable::kNoRank) return;
  heap_.push_back({merge.rank, left, right, left_token, right_token, merge.merged});
  std::push_heap(heap_.begin(), heap_.end());
}

/// Merges the right symbol into the left; false when the candidate is outdated.
bool SymbolMerger::apply(const Candidate& candidate) {
  SymbolMerger::Symbol& left = symbols[at(candidate.left)];
  SymbolMerger::Symbol& right = symbols[at(candidate.right)];
  Link& link = links_[at(candidate.left)];
  if (left.token != candidate.left_token || right.token != candidate.right_token) return false;
  if (link.next != candidate.right) return false;
  left.token = candidate.merged;
  link.next = links_[at(candidate.right)].next;
  if (link.next != kNone) links_[at(link.next)].previous = candidate.left;
  links_[at(candidate.right)] = {kNone, kNone};
  right.token = kNoToken;
  return true;
}

void SymbolMerger::merge_long(const MergeTable& merges) {
  const auto count = static_cast<std::int32_t>(symbols.size());
  links_.clear();
  heap_.clear();
  for (std::int32_t i = 0; i < count; ++i) links_.push_back({i - 1, i + 1 < count ? i + 1 : kNone});
  for (std::int32_t i = 0; i + 1 < count; ++i) offer(merges, i, i + 1);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate candidate = heap_.back();
    heap_.pop_back();
    if (!apply(candidate)) continue;
    offer(merges, links_[at(candidate.left)].previous, candidate.left);
    offer(merges, candidate.left, links_[at(candidate.left)].next);
  }
  // The remaining symbols are linked, from the first on.
  std::size_t kept = 0;
  for (std::int32_t i = 0; i != kNone; i = links_[at(i)].next) symbols[kept++] = symbols[at(i)];
  symbols.resize(kept);
}

}  // namespace efimd::engine
