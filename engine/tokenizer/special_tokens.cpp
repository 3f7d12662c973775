#include "engine/tokenizer/special_tokens.h"

#include <array>
#include <string_view>

#include "engine/model/gguf.h"

namespace efimd::engine {
namespace {

/// Ends of a text or of a turn, by text.
constexpr std::array<std::string_view, 16> kEnds = {
    "<|endoftext|>", "<|im_end|>", "<|end_of_text|>",
    "<|eot_id|>",    "<|eom_id|>", "<|EOT|>",
    "<|end|>",       "</s>",       "<｜end▁of▁sentence｜>",
    "<eos>",         "<eot>",      "<[end▁of▁sentence]>",
    "<EOT>",         "[EOS]",      "<end_of_turn>",
    "[EOT]"};

TokenId by_text(const Vocabulary& vocabulary, std::string_view text) {
  const TokenId id = vocabulary.find(text);
  if (id == kNoToken) return kNoToken;
  return looks_special(text) || vocabulary.kind(id) != TokenKind::kNormal ? id : kNoToken;
}

}  // namespace

SpecialTokens SpecialTokens::find(const GgufFile& file, const Vocabulary& vocabulary,
                                  const FimFormat& format) {
  SpecialTokens special;
  special.fim = format.fim;
  special.ends_generation.assign(vocabulary.texts.size(), false);
  const auto end = [&](TokenId token) {
    if (token != kNoToken) special.ends_generation[static_cast<std::size_t>(token)] = true;
  };
  for (const TokenId token : format.frame) end(token);
  for (const char* const key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    end(token_by_key(file, vocabulary, {key}));
  for (const std::string_view text : kEnds) end(by_text(vocabulary, text));

  special.control = special.ends_generation;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenKind kind = vocabulary.kind(id);
    if (kind == TokenKind::kControl || kind == TokenKind::kUnused || kind == TokenKind::kUnknown)
      special.control[static_cast<std::size_t>(id)] = true;
  }
  return special;
}

TokenId find_bos(const GgufFile& file, const Vocabulary& vocabulary, bool by_default) {
  const bool wanted =
      file.integer("tokenizer.ggml.add_bos_token").value_or(by_default ? 1 : 0) != 0;
  if (!wanted) return kNoToken;
  const TokenId named = token_by_key(file, vocabulary, {"bos_token_id"});
  return named != kNoToken ? named : by_text(vocabulary, "<s>");
}

}  // namespace efimd::engine
