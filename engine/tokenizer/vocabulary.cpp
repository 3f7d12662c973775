#include "engine/tokenizer/vocabulary.h"

#include <charconv>
#include <limits>
#include <utility>

#include "engine/model/gguf.h"

namespace efimd::engine {
namespace {

constexpr std::size_t kTokensMax = std::size_t{1} << 20;     ///< the largest known have 2^18
constexpr std::size_t kTextBytesMax = std::size_t{1} << 28;  ///< of all tokens; more is refused

Result<std::vector<TokenKind>> read_kinds(const GgufFile& file, std::size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  std::vector<TokenKind> kinds(tokens, TokenKind::kNormal);
  if (!file.metadata().contains(kKey)) return kinds;
  const auto* const numbers = file.integers(kKey);
  if (numbers == nullptr || numbers->size() != tokens)
    return fail(Fault::kBadInput,
                file.name() + ": " + std::string(kKey) + " does not have one number for each of " +
                    std::to_string(tokens) + " tokens",
                "download the file again");
  for (std::size_t i = 0; i < tokens; ++i) {
    const std::int64_t number = (*numbers)[i];
    if (number < 0 || number > static_cast<int>(TokenKind::kByte))
      return fail(Fault::kBadInput,
                  file.name() + ": " + std::string(kKey) + " gives token " + std::to_string(i) +
                      " the unknown type " + std::to_string(number),
                  "download the file again");
    if (number != 0) kinds[i] = static_cast<TokenKind>(number);  // 0: not said
  }
  return kinds;
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const GgufFile& file) {
  const auto* const tokens = file.strings("tokenizer.ggml.tokens");
  if (tokens == nullptr || tokens->empty())
    return fail(Fault::kBadInput, file.name() + ": has no tokenizer.ggml.tokens",
                "use a model file with its tokenizer");
  if (tokens->size() > kTokensMax)
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.tokens has " + std::to_string(tokens->size()) +
                    " tokens, more than " + std::to_string(kTokensMax),
                "download the file again");
  std::size_t text_bytes = 0;
  for (const std::string_view text : *tokens) text_bytes += text.size();
  if (text_bytes > kTextBytesMax)
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.tokens has " + std::to_string(text_bytes) +
                    " bytes of text, more than " + std::to_string(kTextBytesMax),
                "download the file again");
  static_assert(std::numeric_limits<TokenId>::max() > kTokensMax);
  Result<std::vector<TokenKind>> kinds = read_kinds(file, tokens->size());
  if (!kinds) return tl::unexpected<Error>(std::move(kinds.error()));

  Vocabulary vocabulary;
  vocabulary.file_name = file.name();
  vocabulary.texts = *tokens;
  vocabulary.kinds = std::move(*kinds);
  vocabulary.ids.reserve(tokens->size());
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    vocabulary.ids.emplace(vocabulary.text(id), id);
  return vocabulary;
}

TokenId Vocabulary::find(std::string_view token_text) const {
  const auto found = ids.find(token_text);
  return found == ids.end() ? kNoToken : found->second;
}

bool looks_special(std::string_view text) {
  const auto framed = [&](std::string_view open, std::string_view close) {
    return text.size() > open.size() + close.size() && text.starts_with(open) &&
           text.ends_with(close);
  };
  return framed("<|", "|>") || framed("<｜", "｜>") || framed("[PAD", "]") || text == "<pad>" ||
         text == "<mask>";
}

int byte_of_name(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return error == std::errc() && end == text.data() + 5 && byte >= 0 ? byte : -1;
}

}  // namespace efimd::engine
