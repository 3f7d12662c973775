#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/tokenizer/vocabulary.h"
#include "engine/types.h"

namespace efimd::engine {

/// Pairs of tokens that byte-level BPE merges, with their ranks. It is a flat hash table, because
/// encoding looks up two pairs for each merge and a file has 150,000 pairs.
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

/// Byte-pair merging. Of all neighbours that merge, those with the smallest rank become one, until
/// none is left. Among equal ranks the leftmost goes first.
///
/// Nearly all words are short: their ranks are searched each time (n * n). Long ones use a heap (n
/// log n). An object is kept from word to word for its memory.
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

/// Words to tokens by byte-pair merging. Most words of a text are one token of the vocabulary and
/// are found without merging.
///
/// Thread: any, once filled.
class BpeWords {
 public:
  BpeWords(TokenIndex index, MergeTable merges)
      : index_(std::move(index)), merges_(std::move(merges)) {}

  /// Returns the tokens of `word`, in `merger`. `spell(word, symbols)` writes what it is merged
  /// from.
  template <class Spell>
  const std::vector<SymbolMerger::Symbol>& merge(std::string_view word, SymbolMerger& merger,
                                                 const Spell& spell) const {
    using Whole = TokenIndex::Whole;
    merger.symbols.clear();
    const TokenId whole = index_.find(word);
    const Whole known = whole == kNoToken ? Whole::kNo : index_.whole(whole);
    if (known == Whole::kYes) {
      merger.symbols.push_back({whole, 0});
      return merger.symbols;
    }
    spell(word, merger.symbols);
    merger.merge(merges_);
    if (known == Whole::kNotTried) {
      const bool one = merger.symbols.size() == 1 && merger.symbols.front().token == whole;
      index_.remember(whole, one ? Whole::kYes : Whole::kNo);
    }
    return merger.symbols;
  }

  const TokenIndex& index() const { return index_; }

 private:
  TokenIndex index_;
  MergeTable merges_;
};

}  // namespace efimd::engine
