#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/symbol_merger.h"
#include "engine/tokenizer/table_tokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// Byte-level BPE ("gpt2" in GGUF). The pre-tokenizer rule cuts the text into pieces; each piece
/// begins as single bytes, which then merge.
class ByteBpe final : public TableTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> open(const GgufFile& file, const Vocabulary& vocabulary,
                                                 SpecialTokens special);

  std::vector<TokenId> encode(std::string_view text, Fragment where) const override;

 private:
  ByteBpe(SpecialTokens special, TokenId bos, PreTokenizer splitter);
  Result<void> read_bytes(const Vocabulary& vocabulary);
  TokenIndex index_of(const Vocabulary& vocabulary, const PreTokenizerRule& rule) const;
  void encode_valid(std::string_view text, std::vector<TokenId>& tokens) const;

  PreTokenizer splitter_;
  BpeWords words_{TokenIndex(), MergeTable(0)};
  std::array<TokenId, 256> byte_tokens_;
  WholeTokens wholes_;
};

}  // namespace efimd::engine
