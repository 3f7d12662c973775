#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/tokenizer/seams.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// The part that byte-level BPE and sentencepiece share: each token's bytes and duties, in tables.
class TableTokenizer : public Tokenizer {
 public:
  std::string_view bytes(TokenId token) const override;
  std::size_t line_cut(std::string_view text) const override;
  bool is_seam(char left, char right) const override { return seams_.contains(left, right); }
  int size() const override { return static_cast<int>(ends_.size()) - 1; }
  bool is_control(TokenId token) const override;
  bool ends_generation(TokenId token) const override;
  TokenId bos() const override { return bos_; }
  const FimTokens& fim() const override { return special_.fim; }

 protected:
  TableTokenizer(SpecialTokens special, TokenId bos);

  /// Appends the next token's bytes; called once for each, in order. Control tokens add none.
  void add_bytes(std::string_view bytes);
  /// Places at which a text may be cut before encode().
  void set_seams(const SeamTable& seams) { seams_ = seams; }
  /// Learns from encode() whether newlines and indents share tokens; the last step of construction.
  void find_newline_glue();
  bool contains(TokenId token) const { return token >= 0 && token < size(); }

 private:
  std::string pool_;                    ///< all tokens' bytes, one after another
  std::vector<std::uint32_t> ends_{0};  ///< token i is pool_[ends_[i], ends_[i + 1])
  SpecialTokens special_;
  TokenId bos_;
  SeamTable seams_;
  NewlineGlue glue_ = NewlineGlue::kNone;
};

}  // namespace efimd::engine
