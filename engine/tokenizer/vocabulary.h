#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine {

class GgufFile;

/// What a token is for, with the file's numbers (tokenizer.ggml.token_type).
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
  std::vector<TokenKind> kinds;  ///< as many as texts; kNormal where the file says nothing
  std::unordered_map<std::string_view, TokenId> ids;  ///< the first token of each text

  static Result<Vocabulary> read(const GgufFile& file);

  TokenId size() const { return static_cast<TokenId>(texts.size()); }
  bool contains(TokenId token) const { return token >= 0 && token < size(); }
  std::string_view text(TokenId token) const { return texts[static_cast<std::size_t>(token)]; }
  TokenKind kind(TokenId token) const { return kinds[static_cast<std::size_t>(token)]; }
  /// kNoToken when no token has this text.
  TokenId find(std::string_view token_text) const;
};

/// Whether a text is spelled as only special tokens are: "<|…|>" and the like. Converters often
/// mark such tokens as user-defined; source code that quotes one must not become it.
bool looks_special(std::string_view text);

/// "<0x0A>" -> 10; -1 for other texts.
int byte_of_name(std::string_view text);

}  // namespace efimd::engine
