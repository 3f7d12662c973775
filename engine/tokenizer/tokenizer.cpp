#include "engine/tokenizer/tokenizer.h"

#include <utility>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/byte_bpe.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/special_tokens.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const GgufFile& file) {
  const auto model = file.string("tokenizer.ggml.model");
  if (!model)
    return fail(Fault::kBadInput, file.name() + ": has no tokenizer.ggml.model",
                "use a model file with its tokenizer");
  if (*model != "gpt2" && *model != "llama")
    return fail(Fault::kUnsupported,
                file.name() + ": has tokenizer.ggml.model \"" +
                    utf8::sanitized(model->substr(0, 80)) +
                    "\"; this build runs gpt2 (byte-level BPE) and llama (sentencepiece BPE)",
                "use another model");
  const Result<Vocabulary> vocabulary = Vocabulary::read(file);
  if (!vocabulary) return tl::unexpected<Error>(vocabulary.error());
  SpecialTokens special = SpecialTokens::find(file, *vocabulary);
  if (*model == "gpt2") return ByteBpe::open(file, *vocabulary, std::move(special));
  return Sentencepiece::open(file, *vocabulary, std::move(special));
}

}  // namespace efimd::engine
