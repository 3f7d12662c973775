#include "engine/tokenizer/tokenizer.h"

#include <utility>

#include "base/utf8.h"
#include "engine/model/gguf.h"
#include "engine/tokenizer/byte_bpe.h"
#include "engine/tokenizer/fim_format.h"
#include "engine/tokenizer/sentencepiece.h"
#include "engine/tokenizer/vocabulary.h"

namespace efimd::engine {

Result<std::unique_ptr<Tokenizer>> Tokenizer::from_gguf(const GgufFile& file,
                                                        const FimOverride& fim) {
  const auto model = file.string("tokenizer.ggml.model");
  if (!model)
    return fail(Fault::kBadInput, file.name() + ": has no tokenizer.ggml.model",
                "use a model file with its tokenizer");
  if (*model != "gpt2" && *model != "llama" && *model != "t5")
    return fail(Fault::kUnsupported,
                file.name() + ": has tokenizer.ggml.model \"" +
                    utf8::sanitized(model->substr(0, 80)) +
                    "\"; this build runs gpt2 (byte-level BPE), llama "
                    "(sentencepiece BPE) and t5 (sentencepiece unigram)",
                "use another model");
  const Result<Vocabulary> vocabulary = Vocabulary::read(file);
  if (!vocabulary) return tl::unexpected<Error>(vocabulary.error());
  const Result<FimFormat> format = recognize_fim(file, *vocabulary, fim);
  if (!format) return tl::unexpected<Error>(format.error());
  SpecialTokens special = SpecialTokens::find(file, *vocabulary, *format);
  if (*model == "gpt2") return ByteBpe::open(file, *vocabulary, std::move(special));
  const auto kind = *model == "t5" ? Sentencepiece::Kind::kUnigram : Sentencepiece::Kind::kBpe;
  return Sentencepiece::open(file, *vocabulary, std::move(special), kind);
}

}  // namespace efimd::engine
