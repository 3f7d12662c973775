#pragma once

#include <sentencepiece_processor.h>

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/tokenizer/table_tokenizer.h"

namespace efimd::engine {

/// Sentencepiece BPE ("llama" in GGUF), through its library, fed with a model that is written from
/// the file's tokens.
///
/// The library writes spaces as "▁" (U+2581) and reads "▁" in a text as a space. So that decoding
/// gives the text back, "▁" in a text becomes its three byte tokens where the vocabulary has them.
/// 30 KB of C++ take 13-21 ms on one core (byte-level BPE here: 3-5 ms); parts that fit the cache
/// were tried and saved a tenth.
class Sentencepiece final : public TableTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> open(const GgufFile& file, const Vocabulary& vocabulary,
                                                 SpecialTokens special);

  std::vector<TokenId> encode(std::string_view text, Fragment where) const override;

 private:
  Sentencepiece(SpecialTokens special, TokenId bos);
  void read_bytes(const Vocabulary& vocabulary);
  void encode_valid(std::string_view text, std::vector<TokenId>& tokens) const;

  sentencepiece::SentencePieceProcessor processor_;
  bool dummy_space_ = true;
  std::array<TokenId, 256> byte_tokens_;
};

}  // namespace efimd::engine
