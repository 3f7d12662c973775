#include "engine/tokenizer/byte_bpe.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "engine/model/gguf.h"

namespace efimd::engine {
namespace {

constexpr char32_t kLettersEnd = 0x144;  ///< 256 + the 68 bytes that do not print

constexpr bool prints(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr auto kLetters = [] {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    letters[static_cast<std::size_t>(byte)] = prints(byte) ? static_cast<char32_t>(byte) : next++;
  return letters;
}();

constexpr auto kBytes = [] {
  std::array<std::int16_t, kLettersEnd> bytes{};
  bytes.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte)
    bytes[kLetters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}();

/// The bytes that `text` spells in GPT-2's alphabet for bytes, in which byte-level vocabularies are
/// written. Bytes that print in Latin-1 stand for themselves. The others stand, in order, for
/// U+0100 and up (a space is "Ġ"). nullopt when it has other letters.
std::optional<std::string> bytes_of_letters(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size();) {
    const utf8::CodePoint letter = utf8::decode(text, at);
    if (!letter.valid || letter.value >= kLettersEnd || kBytes[letter.value] < 0)
      return std::nullopt;
    bytes += static_cast<char>(kBytes[letter.value]);
    at += static_cast<std::size_t>(letter.length);
  }
  return bytes;
}

/// Bytes that every source text has. Others may have no token (StarCoder's vocabulary has none for
/// the planes of Unicode that are empty) and then add none.
bool must_have_token(std::size_t byte) {
  return (byte >= 0x20 && byte <= 0x7E) || byte == '\n' || byte == '\t';
}

constexpr std::size_t kMergesMax = std::size_t{1} << 21;  ///< the largest known have 2^19

std::string_view as_text(const std::string& bytes) { return bytes; }

Result<MergeTable> read_merges(const GgufFile& file, const Vocabulary& vocabulary) {
  const auto* const lines = file.strings("tokenizer.ggml.merges");
  if (lines == nullptr)
    return fail(Fault::kBadInput, file.name() + ": has no tokenizer.ggml.merges",
                "use a model file with its whole tokenizer");
  if (lines->size() > kMergesMax)
    return fail(Fault::kBadInput,
                file.name() + ": tokenizer.ggml.merges has " + std::to_string(lines->size()) +
                    " merges, more than " + std::to_string(kMergesMax),
                "download the file again");
  MergeTable merges(lines->size());
  std::string joined;
  for (std::size_t rank = 0; rank < lines->size(); ++rank) {
    const std::string_view line = (*lines)[rank];
    const std::size_t space = std::min(line.find(' ', 1), line.size());
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(std::min(space + 1, line.size()));
    joined.assign(left).append(right);
    const TokenId merged = vocabulary.find(joined);
    const TokenId left_id = vocabulary.find(left);
    const TokenId right_id = vocabulary.find(right);
    if (merged == kNoToken || left_id == kNoToken || right_id == kNoToken)
      return fail(Fault::kBadInput,
                  file.name() + ": tokenizer.ggml.merges: merge " + std::to_string(rank) + ", \"" +
                      utf8::sanitized(line.substr(0, 80)) + "\", has no token",
                  "download the file again or use another model");
    merges.add(left_id, right_id, {static_cast<std::int32_t>(rank), merged});
  }
  return merges;
}

/// The rule of a file that names none, as those from before May 2024 do: llama.cpp gave the key its meaning then.
/// "default" is no model's own, so it is for those of which nothing tells more.
std::string_view unnamed_rule(const GgufFile& file, const Vocabulary& vocabulary) {
  const std::string_view architecture = file.string("general.architecture").value_or("");
  if (architecture == "starcoder2") return "starcoder";
  if (architecture == "qwen2") return "qwen2";
  return vocabulary.find("<｜fim▁begin｜>") != kNoToken ? "deepseek-coder" : "default";
}

}  // namespace

ByteBpe::ByteBpe(SpecialTokens special, TokenId bos, PreTokenizer splitter)
    : TableTokenizer(std::move(special), bos), splitter_(std::move(splitter)) {
  byte_tokens_.fill(kNoToken);
}

Result<std::unique_ptr<Tokenizer>> ByteBpe::open(const GgufFile& file, const Vocabulary& vocabulary,
                                                 SpecialTokens special) {
  const std::string_view name =
      file.string("tokenizer.ggml.pre").value_or(unnamed_rule(file, vocabulary));
  const PreTokenizerRule* const rule = find_pre_tokenizer_rule(name);
  if (rule == nullptr)
    return fail(Fault::kUnsupported,
                file.name() + ": tokenizer.ggml.pre names the pre-tokenizer rule \"" +
                    utf8::sanitized(name.substr(0, 80)) + "\"; this build knows " +
                    pre_tokenizer_rule_names(),
                "use another model");
  Result<PreTokenizer> splitter = PreTokenizer::for_rule(*rule);
  if (!splitter) {
    splitter.error().what.insert(0, file.name() + ": ");
    return tl::unexpected<Error>(std::move(splitter.error()));
  }
  const TokenId bos = find_bos(file, vocabulary, rule->wants_bos);
  std::unique_ptr<ByteBpe> bpe(new ByteBpe(std::move(special), bos, std::move(*splitter)));
  if (auto read = bpe->read_bytes(vocabulary); !read)
    return tl::unexpected<Error>(std::move(read.error()));
  Result<MergeTable> merges = read_merges(file, vocabulary);
  if (!merges) return tl::unexpected<Error>(std::move(merges.error()));
  bpe->words_ = BpeWords(bpe->index_of(vocabulary, *rule), std::move(*merges));
  bpe->find_newline_glue();
  return bpe;
}

Result<void> ByteBpe::read_bytes(const Vocabulary& vocabulary) {
  std::vector<WholeTokens::Whole> wholes;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const bool whole = vocabulary.kind(id) == TokenKind::kUserDefined;
    // A user-defined token's text is not in the alphabet of bytes.
    const auto bytes = whole ? std::nullopt : bytes_of_letters(text);
    add_bytes(bytes ? as_text(*bytes) : text);
    if (bytes && bytes->size() == 1 && vocabulary.kind(id) == TokenKind::kNormal)
      byte_tokens_[static_cast<unsigned char>(bytes->front())] = id;
    if (whole && !text.empty() && !is_control(id) && !looks_special(text))
      wholes.push_back({std::string(text), id});
  }
  SeamTable seams = SeamTable::word_ends();
  for (const WholeTokens::Whole& whole : wholes) seams.join(whole.text);
  set_seams(seams);
  wholes_ = WholeTokens(std::move(wholes));
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte)
    if (must_have_token(byte) && byte_tokens_[byte] == kNoToken)
      return fail(Fault::kBadInput,
                  vocabulary.file_name + ": tokenizer.ggml.tokens has no token for byte " +
                      std::to_string(byte),
                  "download the file again or use another model");
  return {};
}

TokenIndex ByteBpe::index_of(const Vocabulary& vocabulary, const PreTokenizerRule& rule) const {
  TokenIndex index(vocabulary.texts.size());
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (vocabulary.kind(id) != TokenKind::kNormal) continue;
    index.add(bytes(id), id);
    if (rule.takes_whole_tokens && bytes_of_letters(vocabulary.text(id)))
      index.remember(id, TokenIndex::Whole::kYes);
  }
  return index;
}

std::vector<TokenId> ByteBpe::encode(std::string_view text, Fragment) const {
  std::vector<TokenId> tokens;
  tokens.reserve(text.size() / 3 + 1);
  if (utf8::valid_prefix(text) == text.size()) {
    encode_valid(text, tokens);
  } else {
    encode_valid(utf8::sanitized(text), tokens);
  }
  return tokens;
}

void ByteBpe::encode_valid(std::string_view text, std::vector<TokenId>& tokens) const {
  SymbolMerger merger;
  const auto spell = [&](std::string_view piece, std::vector<SymbolMerger::Symbol>& symbols) {
    for (const char byte : piece)
      symbols.push_back({byte_tokens_[static_cast<unsigned char>(byte)]});
  };
  const auto encode_piece = [&](std::string_view piece) {
    for (const auto& symbol : words_.merge(piece, merger, spell))
      if (symbol.token != kNoToken) tokens.push_back(symbol.token);
  };
  wholes_.split(
      text, [&](std::string_view plain) { splitter_.split(plain, encode_piece); },
      [&](TokenId whole) { tokens.push_back(whole); });
}

}  // namespace efimd::engine
