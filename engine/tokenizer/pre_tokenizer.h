#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::engine {

/// The meaning of a value of tokenizer.ggml.pre: the regular expressions of a model family's
/// tokenizer.json, and two habits of its byte-level BPE.
struct PreTokenizerRule {
  std::string_view name;
  std::span<const char* const> patterns;
  /// A piece that is a token is taken as that token even if the merges lead elsewhere.
  bool takes_whole_tokens = false;
  bool wants_bos = false;  ///< where tokenizer.ggml.add_bos_token is absent
};

/// nullptr for names that are not known here.
const PreTokenizerRule* find_pre_tokenizer_rule(std::string_view name);
/// All names, for messages: "default, gpt-2, …".
std::string pre_tokenizer_rule_names();

/// Splits text into the pieces within which byte-level BPE merges. A model family's rule is one or
/// more regular expressions; each applies to the text that the one before left. Matches and the
/// text between them are pieces alike.
///
/// Thread: any, after construction. Limits: kPieceBytesMax.
class PreTokenizer {
 public:
  /// Longer pieces (a megabyte of one letter) are cut, so that one piece's memory stays bounded.
  /// Tokens at such a cut may differ from the model's own.
  static constexpr std::size_t kPieceBytesMax = std::size_t{1} << 18;

  /// kUnsupported when PCRE2 was built without Unicode.
  static Result<PreTokenizer> for_rule(const PreTokenizerRule& rule);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  /// Calls `piece` for each piece of `text`, which must be valid UTF-8, in order; joined they are
  /// `text`.
  void split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

 private:
  struct Pattern;
  PreTokenizer();
  std::vector<Pattern> patterns_;
};

}  // namespace efimd::engine
