#include "engine/tokenizer/special_tokens.h"

#include <array>
#include <initializer_list>
#include <string_view>

#include "engine/model/gguf.h"

namespace efimd::engine {
namespace {

/// FIM tokens of one maker, by text (facts.md, section 3).
struct Family {
  std::string_view prefix, suffix, middle, pad, end;
  FimOrder order;
};

constexpr std::array<Family, 8> kFamilies = {{
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "", FimOrder::kPsm},
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "", FimOrder::kPsm},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>", "", FimOrder::kPsm},
    // DeepSeek: the text goes begin, before, hole, after, end.
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "", "", FimOrder::kPsm},
    {"▁<PRE>", "▁<SUF>", "▁<MID>", "", "▁<EOT>", FimOrder::kPsm},
    {"<PRE>", "<SUF>", "<MID>", "<PAD>", "<EOT>", FimOrder::kPsm},
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", "", FimOrder::kPsm},
    // Codestral: generation follows the prefix at once.
    {"[PREFIX]", "[SUFFIX]", "", "", "", FimOrder::kSpm},
}};

constexpr std::array<std::string_view, 6> kRepository = {
    "<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<reponame>", "<fim-repo>", "<REPO>"};
constexpr std::array<std::string_view, 3> kFileSeparator = {"<|file_sep|>", "<file_sep>",
                                                            "<|file_separator|>"};
constexpr std::array<std::string_view, 15> kEnds = {
    "<|endoftext|>", "<|im_end|>", "<|end_of_text|>",       "<|eot_id|>", "<|eom_id|>",
    "<|EOT|>",       "<|end|>",    "<｜end▁of▁sentence｜>", "</s>",       "<eos>",
    "<eot>",         "<EOT>",      "<end_of_turn>",         "[EOS]",      "[EOT]"};

/// The token that one of `keys` names, or kNoToken.
TokenId by_key(const GgufFile& file, const Vocabulary& vocabulary,
               std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const std::int64_t id = file.integer("tokenizer.ggml." + std::string(key)).value_or(kNoToken);
    if (id >= 0 && id < vocabulary.size()) return static_cast<TokenId>(id);
  }
  return kNoToken;
}

/// The token with this text, if the text is more than a word that happens to be spelled so.
TokenId by_text(const Vocabulary& vocabulary, std::string_view text) {
  const TokenId id = text.empty() ? kNoToken : vocabulary.find(text);
  if (id == kNoToken) return kNoToken;
  return looks_special(text) || vocabulary.kind(id) != TokenKind::kNormal ? id : kNoToken;
}

template <std::size_t kCount>
TokenId by_text(const Vocabulary& vocabulary, const std::array<std::string_view, kCount>& texts) {
  for (const std::string_view text : texts)
    if (const TokenId id = by_text(vocabulary, text); id != kNoToken) return id;
  return kNoToken;
}

bool is_prefix_of_spm(const Vocabulary& vocabulary, TokenId prefix) {
  return vocabulary.text(prefix) == "[PREFIX]";
}

/// The family whose prefix, suffix and middle are all there. A whole family is proof enough, so
/// that its tokens may be marked as ordinary ones.
const Family* find_family(const Vocabulary& vocabulary) {
  for (const Family& family : kFamilies) {
    const auto has = [&](std::string_view text) {
      return text.empty() || vocabulary.find(text) != kNoToken;
    };
    if (has(family.prefix) && has(family.suffix) && has(family.middle)) return &family;
  }
  return nullptr;
}

/// Every token that frames a prompt, and those that only belong to the family.
struct Frame {
  FimTokens fim;
  TokenId pad = kNoToken;
  TokenId end = kNoToken;
};

void read_order(Frame& frame, const Vocabulary& vocabulary) {
  FimTokens& fim = frame.fim;
  const Family* const family = find_family(vocabulary);
  if (fim.prefix != kNoToken && fim.suffix != kNoToken) {
    const bool psm = fim.middle != kNoToken && !is_prefix_of_spm(vocabulary, fim.prefix);
    fim.order = psm ? FimOrder::kPsm : FimOrder::kSpm;
    fim.reason = "metadata";
  } else if (family != nullptr) {
    fim.order = family->order;
    fim.prefix = vocabulary.find(family->prefix);
    fim.suffix = vocabulary.find(family->suffix);
    fim.middle = vocabulary.find(family->middle);
    fim.reason = "by text: " + std::string(family->prefix);
  } else {
    fim.prefix = fim.suffix = fim.middle = kNoToken;
    fim.reason = "the vocabulary has no fill-in-the-middle tokens";
  }
  if (family != nullptr && frame.pad == kNoToken) frame.pad = vocabulary.find(family->pad);
  if (family != nullptr) frame.end = vocabulary.find(family->end);
}

Frame find_frame(const GgufFile& file, const Vocabulary& vocabulary) {
  Frame frame;
  FimTokens& fim = frame.fim;
  fim.prefix = by_key(file, vocabulary, {"fim_pre_token_id", "prefix_token_id"});
  fim.suffix = by_key(file, vocabulary, {"fim_suf_token_id", "suffix_token_id"});
  fim.middle = by_key(file, vocabulary, {"fim_mid_token_id", "middle_token_id"});
  fim.repository = by_key(file, vocabulary, {"fim_rep_token_id"});
  fim.file_separator = by_key(file, vocabulary, {"fim_sep_token_id"});
  frame.pad = by_key(file, vocabulary, {"fim_pad_token_id"});
  read_order(frame, vocabulary);
  if (fim.repository == kNoToken) fim.repository = by_text(vocabulary, kRepository);
  if (fim.file_separator == kNoToken) fim.file_separator = by_text(vocabulary, kFileSeparator);
  return frame;
}

}  // namespace

SpecialTokens SpecialTokens::find(const GgufFile& file, const Vocabulary& vocabulary) {
  const Frame frame = find_frame(file, vocabulary);
  SpecialTokens special;
  special.fim = frame.fim;
  special.ends_generation.assign(vocabulary.texts.size(), false);
  const auto end = [&](TokenId token) {
    if (token != kNoToken) special.ends_generation[static_cast<std::size_t>(token)] = true;
  };
  const FimTokens& fim = special.fim;
  for (const TokenId token : {fim.prefix, fim.suffix, fim.middle, fim.repository,
                              fim.file_separator, frame.pad, frame.end})
    end(token);
  for (const char* const key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    end(by_key(file, vocabulary, {key}));
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
  const TokenId named = by_key(file, vocabulary, {"bos_token_id"});
  return named != kNoToken ? named : by_text(vocabulary, "<s>");
}

}  // namespace efimd::engine
