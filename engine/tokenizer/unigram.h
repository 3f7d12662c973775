#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/symbol_merger.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// Splits a word into the tokens whose scores have the largest sum (sentencepiece's unigram models,
/// "t5" in GGUF). A character that no token covers costs more than any token.
///
/// Time: bytes of the word times bytes of the longest token. Keep one from word to word for its
/// memory.
class UnigramSplitter {
 public:
  using Symbol = SymbolMerger::Symbol;
  /// `scores` by token. Characters without a token become kNoToken.
  void split(std::string_view word, const TokenIndex& index, std::span<const float> scores,
             float unknown_score, std::vector<Symbol>& symbols);

 private:
  /// The best way to the byte before which it stands.
  struct Step {
    double score;
    std::uint32_t begin;
    TokenId token;
  };
  std::vector<Step> steps_;
};

}  // namespace efimd::engine
