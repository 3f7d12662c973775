#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "engine/tokenizer/merge_table.h"

namespace efimd::engine {

/// Byte-pair merging: of all neighbours that merge, those with the smallest rank, of equal ranks
/// the leftmost, become one, until none is left.
///
/// Short words, which nearly all are, by looking through the ranks each time (n * n); long ones
/// with a heap (n log n). An object is kept from word to word for its memory.
class SymbolMerger {
 public:
  struct Symbol {
    TokenId token = kNoToken;  ///< kNoToken: merges with nothing
    std::uint32_t begin = 0;   ///< the caller's: the first byte of its text
  };

  /// The word: filled by the caller, then merged in place.
  std::vector<Symbol> symbols;
  void merge(const MergeTable& merges);

 private:
  struct Link {
    std::int32_t previous;
    std::int32_t next;
  };
  /// Two neighbours in the heap; outdated when they no longer hold these tokens.
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;
    std::int32_t right;
    TokenId left_token;
    TokenId right_token;
    TokenId merged;
    /// For the standard heap, whose first is the largest.
    bool operator<(const Candidate& other) const {
      return std::tie(rank, left) > std::tie(other.rank, other.left);
    }
  };

  void merge_short(const MergeTable& merges);
  void merge_long(const MergeTable& merges);
  void offer(const MergeTable& merges, std::int32_t left, std::int32_t right);
  bool apply(const Candidate& candidate);

  std::vector<MergeTable::Merge> pairs_;  ///< of symbol i and i + 1
  std::vector<Link> links_;
  std::vector<Candidate> heap_;
};

}  // namespace efimd::engine
