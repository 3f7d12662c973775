#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/tokenizer/pre_tokenizer_rules.h"

namespace efimd::engine {

/// Splits text into the pieces within which byte-level BPE merges, by a model family's rule: one or
/// more regular expressions, each applied to what the one before left. Matches and the text between
/// them are pieces alike.
///
/// Thread: any, after construction. Limits: kPieceBytesMax.
class PreTokenizer {
 public:
  /// Longer pieces (a megabyte of one letter) are cut, so that one piece's memory stays bounded;
  /// tokens at such a cut may differ from the model's own.
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
