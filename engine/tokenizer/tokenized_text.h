#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/tokenizer/tokenizer.h"

namespace efimd::engine {

/// A text's tokens and their ends, kept up to date over edits. They are always those that encode()
/// gives for the whole text.
///
/// The text stays its owner's; it is valid UTF-8 of less than 4 GiB. The text around an edit is
/// tokenized again, from the last seam before it to the first after it (Tokenizer::is_seam).
/// Usually that is a word or two on both sides. If a vocabulary has no seams, all of the text is
/// tokenized again. Thread: its owner's. Owns no tokenizer: that one must outlive it.
class TokenizedText {
 public:
  /// `where`: where the text begins.
  TokenizedText(const Tokenizer& tokenizer, Fragment where)
      : tokenizer_(&tokenizer), where_(where) {}

  /// Starts over with `text`.
  void set(std::string_view text);

  /// The change that an edit made to the tokens: ` inserted` tokens replaced `removed` ones at
  /// index `begin`. The tokens before and after are the same.
  struct Change {
    std::size_t begin = 0;
    std::size_t removed = 0;
    std::size_t inserted = 0;
    bool operator==(const Change&) const = default;
  };
  /// `text` is the last text with `removed` bytes at `begin` replaced by `inserted` ones. Tokenizes
  /// what changed and moves the tokens after it.
  Change replace(std::string_view text, std::size_t begin, std::size_t removed,
                 std::size_t inserted);

  std::span<const TokenId> tokens() const { return tokens_; }
  /// For each token, where its bytes end. Grows; the last is the text's size. Bytes that no token
  /// covers (StarCoder's vocabulary lacks some) count to a neighbouring token.
  std::span<const std::uint32_t> ends() const { return ends_; }
  /// The byte where `token` begins; for the count of tokens, the text's size.
  std::size_t begin_of(std::size_t token) const { return token == 0 ? 0 : ends_[token - 1]; }
  /// How many tokens lie wholly in text[0, byte). Takes log n.
  std::size_t tokens_before(std::size_t byte) const;
  /// Whether a token begins or the text ends at `byte`.
  bool is_border(std::size_t byte) const { return begin_of(tokens_before(byte)) == byte; }

 private:
  /// Encodes text[begin, end) into the scratch vectors.
  void encode_part(std::string_view text, std::size_t begin, std::size_t end);
  Change splice(std::size_t first, std::size_t last, std::ptrdiff_t grown);

  const Tokenizer* tokenizer_;
  Fragment where_;
  std::vector<TokenId> tokens_;
  std::vector<std::uint32_t> ends_;
  std::vector<TokenId> part_tokens_;  ///< kept for their memory
  std::vector<std::uint32_t> part_ends_;
};

}  // namespace efimd::engine
