#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokenizer/symbol_merger.h"
#include "engine/tokenizer/table_tokenizer.h"
#include "engine/tokenizer/unigram.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// Sentencepiece's two kinds of model, over characters. BPE ("llama" in GGUF) merges pairs that
/// spell a token, best score first; the other is unigram ("t5").
///
/// Spaces stand in the vocabulary as "▁" (U+2581). "▁" in a text is a character of its own, so that
/// decoding gives the text back. A character without a token becomes its bytes' tokens, or the
/// unknown token if the vocabulary has none. A text is taken apart at seams first. (Its own library
/// was tried: 2 MB/s, the same tokens.)
class Sentencepiece final : public TableTokenizer {
 public:
  enum class Kind { kBpe, kUnigram };
  static Result<std::unique_ptr<Tokenizer>> open(const GgufFile& file, const Vocabulary& vocabulary,
                                                 SpecialTokens special, Kind kind);

  std::vector<TokenId> encode(std::string_view text, Fragment where) const override;

 private:
  struct Scratch;
  Sentencepiece(SpecialTokens special, TokenId bos, Kind kind);
  void read_tokens(const Vocabulary& vocabulary);
  bool is_word(const Vocabulary& vocabulary, TokenId id) const;
  TokenIndex index_of(const Vocabulary& vocabulary) const;
  MergeTable merges_of(const Vocabulary& vocabulary, const TokenIndex& index) const;
  void find_seams(const Vocabulary& vocabulary);
  void encode_plain(std::string_view text, Scratch& scratch) const;
  void encode_word(std::string_view word, Scratch& scratch) const;
  void encode_unknown(std::string_view character, std::vector<TokenId>& tokens) const;

  Kind kind_;
  bool dummy_space_ = true;
  std::vector<float> scores_;  ///< by token
  float unknown_score_ = 0;    ///< unigram: of a character without a token
  BpeWords words_{TokenIndex(), MergeTable(0)};
  WholeTokens wholes_;
  std::array<TokenId, 256> byte_tokens_;
  TokenId unknown_ = kNoToken;
};

}  // namespace efimd::engine
