#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// Everything that recognition finds out about a file's fill-in-the-middle format.
struct FimFormat {
  FimTokens fim;
  /// Tokens that frame prompts in this vocabulary, whether the model may be asked or not. They
  /// stand for no text, and generation ends before them.
  std::vector<TokenId> frame;
};

/// Decides whether and how a model fills in the middle.
///
/// A vocabulary with FIM tokens proves nothing. Some makers took over another model's vocabulary
/// and never trained them (OpenCoder, replit-code, Code Llama 34B and Python). So the model must be
/// known by architecture and name, or the file's metadata must name the tokens
/// (tokenizer.ggml.fim_pre_token_id and its kin). Then its converter vouches for them. The user's
/// configuration decides over both. FimTokens::reason says which it was.
///
/// kBadInput when the configuration names a token that the vocabulary does not have.
Result<FimFormat> recognize_fim(const GgufFile& file, const Vocabulary& vocabulary,
                                const FimOverride& wanted);

/// The token of the first key under tokenizer.ggml. that names one of the vocabulary; else
/// kNoToken.
TokenId token_by_key(const GgufFile& file, const Vocabulary& vocabulary,
                     std::initializer_list<std::string_view> keys);

}  // namespace efimd::engine
