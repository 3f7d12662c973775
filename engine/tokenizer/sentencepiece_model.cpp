#include "engine/tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/model/gguf.h"

namespace efimd::engine {
namespace {

// Protocol buffers' wire format: each field is a varint (number << 3 | wire type), then a varint,
// four bytes, or a varint length and that many bytes (protobuf.dev, "Encoding").
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kBytes = 2;
constexpr std::uint32_t kFourBytes = 5;

// Field numbers of sentencepiece_model.proto.
constexpr std::uint32_t kModelPieces = 1;
constexpr std::uint32_t kModelTrainer = 2;
constexpr std::uint32_t kModelNormalizer = 3;
constexpr std::uint32_t kPieceText = 1;
constexpr std::uint32_t kPieceScore = 2;
constexpr std::uint32_t kPieceType = 3;  ///< numbered as TokenKind
constexpr std::uint32_t kTrainerModelType = 3;
constexpr std::uint32_t kTrainerByteFallback = 35;
constexpr std::uint32_t kNormalizerName = 1;
constexpr std::uint32_t kNormalizerDummyPrefix = 3;
constexpr std::uint32_t kNormalizerRemoveExtraSpaces = 4;
constexpr std::uint32_t kNormalizerEscapeSpaces = 5;
constexpr std::uint32_t kModelTypeBpe = 2;

constexpr std::uint32_t kByteTokens = 256;
/// The unknown token of a file that has none: no file's text has this control character.
constexpr std::string_view kOwnUnknown = "<\x01unknown>";

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  out += static_cast<char>(value);
}

void put_number(std::string& out, std::uint32_t field, std::uint64_t value) {
  put_varint(out, field << 3U | kVarint);
  put_varint(out, value);
}

void put_text(std::string& out, std::uint32_t field, std::string_view text) {
  put_varint(out, field << 3U | kBytes);
  put_varint(out, text.size());
  out += text;
}

void put_float(std::string& out, std::uint32_t field, float value) {
  put_varint(out, field << 3U | kFourBytes);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (unsigned shift = 0; shift < 32; shift += 8) out += static_cast<char>(bits >> shift);
}

std::string piece(std::string_view text, float score, TokenKind kind) {
  std::string out;
  put_text(out, kPieceText, text);
  put_float(out, kPieceScore, score);
  put_number(out, kPieceType, static_cast<std::uint64_t>(kind));
  return out;
}

/// Converters write user-defined tokens with plain spaces; the library compares them with "▁".
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == ' ') {
      out += "▁";
    } else {
      out += c;
    }
  return out;
}

/// The library takes one unknown token; special tokens of any type must not be found in a text.
TokenKind kind_for_library(const Vocabulary& vocabulary, const SpecialTokens& special, TokenId id,
                           TokenId unknown) {
  if (id == unknown) return TokenKind::kUnknown;
  const TokenKind kind = vocabulary.kind(id);
  if (kind == TokenKind::kUnused) return kind;
  if (special.control[static_cast<std::size_t>(id)]) return TokenKind::kControl;
  if (kind == TokenKind::kUserDefined && looks_special(vocabulary.text(id)))
    return TokenKind::kControl;
  return kind;
}

Result<const std::vector<double>*> read_scores(const GgufFile& file, std::size_t tokens) {
  const auto* const scores = file.reals("tokenizer.ggml.scores");
  const auto finite = [](double score) { return std::isfinite(static_cast<float>(score)); };
  if (scores != nullptr && scores->size() == tokens &&
      std::all_of(scores->begin(), scores->end(), finite))
    return scores;
  return fail(Fault::kBadInput,
              file.name() + ": tokenizer.ggml.scores does not have one number for each of " +
                  std::to_string(tokens) + " tokens",
              "download the file again or use another model");
}

std::string trainer(bool byte_fallback) {
  std::string out;
  put_number(out, kTrainerModelType, kModelTypeBpe);
  put_number(out, kTrainerByteFallback, byte_fallback ? 1 : 0);
  return out;
}

std::string normalizer() {
  std::string out;
  put_text(out, kNormalizerName, "identity");
  put_number(out, kNormalizerDummyPrefix, 0);
  put_number(out, kNormalizerRemoveExtraSpaces, 0);
  put_number(out, kNormalizerEscapeSpaces, 1);
  return out;
}

}  // namespace

Result<std::string> sentencepiece_model(const GgufFile& file, const Vocabulary& vocabulary,
                                        const SpecialTokens& special) {
  const auto scores = read_scores(file, vocabulary.texts.size());
  if (!scores) return tl::unexpected<Error>(scores.error());
  const auto unknown_at =
      std::find(vocabulary.kinds.begin(), vocabulary.kinds.end(), TokenKind::kUnknown);
  const auto unknown = unknown_at == vocabulary.kinds.end()
                           ? kNoToken
                           : static_cast<TokenId>(unknown_at - vocabulary.kinds.begin());
  const auto bytes = std::count(vocabulary.kinds.begin(), vocabulary.kinds.end(), TokenKind::kByte);
  if (bytes != 0 && bytes != kByteTokens)
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.token_type has " + std::to_string(bytes) +
                    " byte tokens; none or 256 make sense",
                "download the file again or use another model");
  if (vocabulary.find("▁") == kNoToken)
    return fail(Fault::kBadInput, file.name() + ": tokenizer.ggml.tokens has no token for a space",
                "download the file again or use another model");

  std::string model;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const auto score = static_cast<float>((**scores)[static_cast<std::size_t>(id)]);
    const TokenKind kind = kind_for_library(vocabulary, special, id, unknown);
    put_text(model, kModelPieces, piece(escaped(vocabulary.text(id)), score, kind));
  }
  if (unknown == kNoToken)
    put_text(model, kModelPieces, piece(kOwnUnknown, 0, TokenKind::kUnknown));
  put_text(model, kModelTrainer, trainer(bytes != 0));
  put_text(model, kModelNormalizer, normalizer());
  return model;
}

}  // namespace efimd::engine
