#pragma once

#include <vector>

#include "engine/tokenizer/fim_format.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// The tokens of a vocabulary that stand for no text.
struct SpecialTokens {
  FimTokens fim;
  std::vector<bool> ends_generation;  ///< by token id
  /// By token id: control, unused and unknown tokens, and all that ends generation, whatever type
  /// the file gives it (converters differ).
  std::vector<bool> control;

  static SpecialTokens find(const GgufFile& file, const Vocabulary& vocabulary,
                            const FimFormat& format);
};

/// tokenizer.ggml.bos_token_id if the model wants it before every prompt. `by_default` holds if the
/// file does not say (tokenizer.ggml.add_bos_token).
TokenId find_bos(const GgufFile& file, const Vocabulary& vocabulary, bool by_default);

}  // namespace efimd::engine
