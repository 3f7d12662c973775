#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/types.h"

namespace efimd::engine {

/// Pairs of tokens that byte-level BPE merges, with their ranks: a flat hash table, because
/// encoding looks two pairs up for each merge and a file has 150,000 of them.
class MergeTable {
 public:
  struct Merge {
    std::int32_t rank = kNoRank;  ///< smaller merges first
    TokenId merged = kNoToken;
  };
  static constexpr std::int32_t kNoRank = -1;

  explicit MergeTable(std::size_t merges);
  /// A pair that is there already keeps its first rank.
  void add(TokenId left, TokenId right, Merge merge);
  /// rank is kNoRank when the pair does not merge.
  Merge find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  ///< no pair: ids are not negative
  static std::uint64_t key_of(TokenId left, TokenId right);
  std::size_t slot_of(std::uint64_t key) const;

  std::vector<Slot> slots_;  ///< a power of two, at most half full; linear probing
};

}  // namespace efimd::engine
