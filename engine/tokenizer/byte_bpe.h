#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/table_tokenizer.h"

namespace efimd::engine {

/// Byte-level BPE ("gpt2" in GGUF): pieces of the text are single bytes first, then the adjacent
/// pair with the smallest rank is merged until none is left. n log n in a piece's length.
class ByteBpe final : public TableTokenizer {
 public:
  static Result<std::unique_ptr<Tokenizer>> open(const GgufFile& file, const Vocabulary& vocabulary,
                                                 SpecialTokens special);

  std::vector<TokenId> encode(std::string_view text, Fragment where) const override;

 private:
  struct Work;
  /// Text that becomes one token wherever it stands: user-defined tokens.
  struct Whole {
    std::string text;
    TokenId token;
  };

  ByteBpe(SpecialTokens special, TokenId bos, PreTokenizer splitter, std::size_t merges);
  Result<void> read_bytes(const Vocabulary& vocabulary);
  Result<void> read_merges(const std::vector<std::string_view>& lines,
                           const Vocabulary& vocabulary);
  void encode_valid(std::string_view text, std::vector<TokenId>& tokens) const;
  const Whole* whole_at(std::string_view text) const;
  void merge_piece(std::string_view piece, Work& work, std::vector<TokenId>& tokens) const;

  PreTokenizer splitter_;
  MergeTable merges_;
  std::array<TokenId, 256> byte_tokens_;
  std::vector<Whole> wholes_;             ///< longest first
  std::array<bool, 256> whole_begins_{};  ///< bytes that some whole begins with
};

}  // namespace efimd::engine
