#include "engine/tokenizer/vocabulary.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <string_view>
#include <utility>

#include "engine/model/gguf.h"
#include "engine/tokenizer/fim_format.h"

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

/// Ends of a text or of a turn, by text.
constexpr std::array<std::string_view, 16> kEnds = {
    "<|endoftext|>", "<|im_end|>", "<|end_of_text|>",
    "<|eot_id|>",    "<|eom_id|>", "<|EOT|>",
    "<|end|>",       "</s>",       "<｜end▁of▁sentence｜>",
    "<eos>",         "<eot>",      "<[end▁of▁sentence]>",
    "<EOT>",         "[EOS]",      "<end_of_turn>",
    "[EOT]"};

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

unsigned char first_byte(std::string_view text) { return static_cast<unsigned char>(text.front()); }

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

TokenId special_token(const Vocabulary& vocabulary, std::string_view text) {
  const TokenId id = text.empty() ? kNoToken : vocabulary.find(text);
  if (id == kNoToken) return kNoToken;
  return looks_special(text) || vocabulary.kind(id) != TokenKind::kNormal ? id : kNoToken;
}

int byte_of_name(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
  int byte = -1;
  const auto [end, error] = std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return error == std::errc() && end == text.data() + 5 && byte >= 0 ? byte : -1;
}

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
  for (const std::string_view text : kEnds) end(special_token(vocabulary, text));

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
  return named != kNoToken ? named : special_token(vocabulary, "<s>");
}

TokenIndex::TokenIndex(std::size_t tokens)
    : slots_(std::bit_ceil(2 * tokens + 1)),
      tokens_max_(tokens),
      states_(std::make_unique<std::atomic<Whole>[]>(tokens)) {}

const TokenIndex::Slot& TokenIndex::slot_of(std::string_view text, std::uint64_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  const auto tag = static_cast<std::uint32_t>(hash >> 32U);
  std::size_t at = static_cast<std::size_t>(hash) & mask;
  while (slots_[at].token != kNoToken && (slots_[at].hash != tag || slots_[at].text != text))
    at = (at + 1) & mask;
  return slots_[at];
}

void TokenIndex::add(std::string_view text, TokenId token) {
  if (text.empty() || token < 0 || static_cast<std::size_t>(token) >= tokens_max_) return;
  const std::uint64_t hash = hash_of(text);
  const auto at = static_cast<std::size_t>(&slot_of(text, hash) - slots_.data());
  if (slots_[at].token != kNoToken) return;
  slots_[at] = {static_cast<std::uint32_t>(hash >> 32U), token, text};
  text_bytes_max_ = std::max(text_bytes_max_, text.size());
}

TokenId TokenIndex::find(std::string_view text) const {
  if (text.size() > text_bytes_max_) return kNoToken;
  return slot_of(text, hash_of(text)).token;
}

WholeTokens::WholeTokens(std::vector<Whole> wholes) : wholes_(std::move(wholes)) {
  std::ranges::stable_sort(wholes_, {}, &Whole::text);
  for (const Whole& whole : wholes_) begins_[first_byte(whole.text)] = true;
}

// A file may mark all of its tokens as user-defined: one binary search for each byte that agrees.
const WholeTokens::Whole* WholeTokens::find(std::string_view text) const {
  if (!begins_[first_byte(text)]) return nullptr;
  const Whole* longest = nullptr;
  auto begin = wholes_.begin(), end = wholes_.end();
  for (std::size_t size = 1; size <= text.size() && begin != end; ++size) {
    const auto leading = [&](const Whole& whole) {
      return std::string_view(whole.text).substr(0, size);
    };
    begin = std::ranges::lower_bound(begin, end, text.substr(0, size), {}, leading);
    end = std::ranges::upper_bound(begin, end, text.substr(0, size), {}, leading);
    // The shortest stand first.
    if (begin != end && begin->text.size() == size) longest = &*begin;
    begin = std::partition_point(begin, end,
                                 [&](const Whole& whole) { return whole.text.size() == size; });
  }
  return longest;
}

}  // namespace efimd::engine
