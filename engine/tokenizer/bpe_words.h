#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/symbol_merger.h"
#include "engine/tokenizer/token_index.h"

namespace efimd::engine {

/// Words to tokens by byte-pair merging, where most words of a text are one token of the vocabulary
/// and are found without merging.
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
