#pragma once

#include <span>
#include <string>
#include <string_view>

namespace efimd::engine {

/// What a value of tokenizer.ggml.pre stands for: the regular expressions of a model family's
/// tokenizer.json, and two habits of its byte-level BPE that go by the same name.
struct PreTokenizerRule {
  std::string_view name;
  std::span<const char* const> patterns;
  /// A piece that is a token is taken as that token even where the merges lead elsewhere.
  bool takes_whole_tokens = false;
  bool wants_bos = false;  ///< where tokenizer.ggml.add_bos_token is absent
};

/// nullptr for names that are not known here.
const PreTokenizerRule* find_pre_tokenizer_rule(std::string_view name);
/// All names, for messages: "default, gpt-2, …".
std::string pre_tokenizer_rule_names();

}  // namespace efimd::engine
