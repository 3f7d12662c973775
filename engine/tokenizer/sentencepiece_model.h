#pragma once

#include <string>

#include "base/error.h"
#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

/// The vocabulary as a serialized sentencepiece ModelProto: BPE, no normalization, spaces as "▁",
/// no dummy prefix. Pieces keep their token ids; a last one, "<unk>", is added where the file has
/// none.
Result<std::string> sentencepiece_model(const GgufFile& file, const Vocabulary& vocabulary,
                                        const SpecialTokens& special);

}  // namespace efimd::engine
