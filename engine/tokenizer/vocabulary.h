#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/types.h"

namespace efimd::engine {

class GgufFile;
struct FimFormat;

/// A token's purpose, with the file's numbers (tokenizer.ggml.token_type).
enum class TokenKind : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,  ///< text that always becomes this one token
  kUnused = 5,
  kByte = 6,
};

/// A file's token texts while a tokenizer is made of them; the texts point into the mapping.
struct Vocabulary {
  std::string file_name;  ///< for messages
  std::vector<std::string_view> texts;
  std::vector<TokenKind> kinds;  ///< as many as texts; kNormal if the file says nothing
  std::unordered_map<std::string_view, TokenId> ids;  ///< the first token of each text

  static Result<Vocabulary> read(const GgufFile& file);

  TokenId size() const { return static_cast<TokenId>(texts.size()); }
  bool contains(TokenId token) const { return token >= 0 && token < size(); }
  std::string_view text(TokenId token) const { return texts[static_cast<std::size_t>(token)]; }
  TokenKind kind(TokenId token) const { return kinds[static_cast<std::size_t>(token)]; }
  /// kNoToken when no token has this text.
  TokenId find(std::string_view token_text) const;
};

/// Whether a text is spelled as only special tokens are, for example "<|x|>". Converters often mark
/// such tokens as user-defined; source code that quotes one must not become it.
bool looks_special(std::string_view text);
/// The token with this text, if the text is more than a word that happens to be spelled so; kNoToken for none.
TokenId special_token(const Vocabulary& vocabulary, std::string_view text);

/// "<0x0A>" -> 10; -1 for other texts.
int byte_of_name(std::string_view text);

/// The tokens of a vocabulary that stand for no text.
struct SpecialTokens {
  FimTokens fim;
  std::vector<bool> ends_generation;  ///< by token id
  /// By token id: control, unused and unknown tokens, and every token that ends generation.
  /// Converters differ in the type that they give to those.
  std::vector<bool> control;

  static SpecialTokens find(const GgufFile& file, const Vocabulary& vocabulary,
                            const FimFormat& format);
};

/// tokenizer.ggml.bos_token_id if the model wants it before every prompt. `by_default` holds if the
/// file does not say (tokenizer.ggml.add_bos_token).
TokenId find_bos(const GgufFile& file, const Vocabulary& vocabulary, bool by_default);

/// Tokens by the bytes that they spell: a flat hash table, because encoding looks every word up.
///
/// Thread: any, once filled. Owns no texts: they outlive it.
class TokenIndex {
 public:
  /// Whether a token's text, encoded alone, becomes that one token. Most do, which saves the
  /// merging; some do not, because no merges lead there.
  enum class Whole : std::uint8_t { kNotTried, kYes, kNo };

  explicit TokenIndex(std::size_t tokens = 0);
  /// The first token of a text keeps it. Empty texts and more tokens than announced are dropped.
  void add(std::string_view text, TokenId token);

  /// kNoToken when no token spells `text`.
  TokenId find(std::string_view text) const;
  std::size_t text_bytes_max() const { return text_bytes_max_; }

  Whole whole(TokenId token) const { return state(token).load(std::memory_order_relaxed); }
  /// Remembers what encoding showed; any thread that tries finds the same.
  void remember(TokenId token, Whole whole) const {
    state(token).store(whole, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TokenId token = kNoToken;
    std::string_view text;
  };
  const Slot& slot_of(std::string_view text, std::uint64_t hash) const;
  std::atomic<Whole>& state(TokenId token) const {
    return states_[static_cast<std::size_t>(token)];
  }

  std::vector<Slot> slots_;  ///< a power of two, at most half full; linear probing
  std::size_t tokens_max_;
  std::unique_ptr<std::atomic<Whole>[]> states_;  ///< by token
  std::size_t text_bytes_max_ = 0;
};

/// User-defined tokens: texts that always become one token. The leftmost goes first, and the
/// longest of several there.
///
/// Thread: any, after construction.
class WholeTokens {
 public:
  struct Whole {
    std::string text;  ///< not empty
    TokenId token;
  };

  WholeTokens() = default;
  explicit WholeTokens(std::vector<Whole> wholes);

  /// Calls `plain` for the text between them, which may be empty, and `whole` for each of them.
  template <class OnPlain, class OnWhole>
  void split(std::string_view text, const OnPlain& plain, const OnWhole& whole) const {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size() && !wholes_.empty();) {
      const Whole* const found = find(text.substr(at));
      if (found == nullptr) {
        ++at;
        continue;
      }
      plain(text.substr(begin, at - begin));
      whole(found->token);
      begin = at += found->text.size();
    }
    plain(text.substr(begin));
  }

 private:
  const Whole* find(std::string_view text) const;

  std::vector<Whole> wholes_;       ///< in byte order
  std::array<bool, 256> begins_{};  ///< by byte: whether one begins with it
};

}  // namespace efimd::engine
