#include "engine/tokenizer/fim_format.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/utf8.h"
#include "engine/model/gguf.h"

// Sources: the models' cards and tokenizer files. FIM tokens in a vocabulary do not prove that a
// model was trained with them. Some Code Llama and OpenCoder models have them untrained, so models
// are known by name.

namespace efimd::engine {
namespace {

/// FIM tokens of one maker, by text.
struct Family {
  std::string_view prefix, suffix, middle, pad, end;
  FimOrder order;
};

constexpr std::array kFamilies = {
    Family{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|fim_pad|>", "", FimOrder::kPsm},
    Family{"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "", FimOrder::kPsm},
    Family{"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-pad>", "", FimOrder::kPsm},
    Family{"<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "", "", FimOrder::kSpm},
    // DeepSeek: the text goes begin, before, hole, after, end.
    Family{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "", "", FimOrder::kPsm},
    Family{"▁<PRE>", "▁<SUF>", "▁<MID>", "", "▁<EOT>", FimOrder::kPsm},
    Family{"<PRE>", "<SUF>", "<MID>", "<PAD>", "<EOT>", FimOrder::kPsm},
    Family{"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", "", FimOrder::kPsm},
    // Codestral: generation follows the prefix at once.
    Family{"[PREFIX]", "[SUFFIX]", "", "", "", FimOrder::kSpm},
};

using Place = FimFiles::Place;

/// How a maker writes the path of a file; FimFiles with the mark by text.
struct Files {
  Place place;
  std::string_view mark, before_path;
  std::optional<std::string_view> after_repository = {};  ///< none: its name is not said
  bool shows_others = true;                               ///< FimFiles::shows_others
  bool paths_are_comments = false;
};
constexpr Files kNoFiles{Place::kNowhere, "", "", {}, false};
/// FimFiles::paths_are_comments. Sources: Scaling Granite Code Models to 128K Context (arXiv
/// 2407.13739, section 2), and the report on Seed-Coder (arXiv 2506.03524, long-context data).
constexpr Files kPlainFiles{
    .place = Place::kInsidePrefix, .mark = "", .before_path = "", .paths_are_comments = true};
/// Of this project's own models.
constexpr Files kOwnFiles{Place::kBeforePrefix, "<file_sep>", ""};

constexpr Files kQwenFiles{Place::kBeforePrefix, "<|file_sep|>", "", "\n"};
constexpr Files kStarcoderFiles{Place::kInsidePrefix, "<file_sep>", "", ""};
constexpr Files kGemmaFiles{Place::kBeforePrefix, "<|file_separator|>", ""};
constexpr Files kDeepseekFiles{Place::kInsidePrefix, "", "#"};
constexpr Files kCodestralFiles{Place::kInsidePrefix, "", "+++++ "};
constexpr Files kMellumFiles{Place::kBeforePrefix, "<filename>", ""};

/// A model that was trained to fill in the middle, or is known not to be.
struct KnownModel {
  std::string_view title;
  std::string_view architectures;  ///< with blanks between; empty: any
  std::string_view name;           ///< letters and digits that its name has; empty: any
  FimOrder order;                  ///< kNone: it has the tokens, untrained
  Files files;
};

/// The first that fits decides.
constexpr std::array kKnown = {
    KnownModel{"OpenCoder", "", "opencoder", FimOrder::kNone, kNoFiles},
    KnownModel{"replit-code", "", "replit", FimOrder::kNone, kNoFiles},
    KnownModel{"Code Llama 34B", "llama", "codellama34b", FimOrder::kNone, kNoFiles},
    KnownModel{"Code Llama Python", "llama", "codellama7bpython", FimOrder::kNone, kNoFiles},
    KnownModel{"Code Llama Python", "llama", "codellama13bpython", FimOrder::kNone, kNoFiles},
    KnownModel{"Code Llama Python", "llama", "codellama70bpython", FimOrder::kNone, kNoFiles},
    KnownModel{"Code Llama", "llama", "codellama", FimOrder::kPsm, kNoFiles},
    KnownModel{"Qwen2.5-Coder", "qwen2", "qwen25coder", FimOrder::kPsm, kQwenFiles},
    KnownModel{"Qwen3-Coder", "qwen3 qwen3moe", "qwen3coder", FimOrder::kPsm, kQwenFiles},
    KnownModel{"CodeQwen1.5", "qwen2", "codeqwen", FimOrder::kPsm, kNoFiles},
    KnownModel{"DeepSeek-Coder", "llama", "deepseekcoder", FimOrder::kPsm, kDeepseekFiles},
    KnownModel{"StarCoder2", "starcoder2", "", FimOrder::kPsm, kStarcoderFiles},
    KnownModel{"CodeGemma", "gemma", "codegemma", FimOrder::kPsm, kGemmaFiles},
    KnownModel{"Granite Code", "llama granite", "granite", FimOrder::kPsm, kPlainFiles},
    KnownModel{"Codestral", "llama", "codestral", FimOrder::kSpm, kCodestralFiles},
    KnownModel{"Seed-Coder", "llama", "seedcoder", FimOrder::kSpm, kPlainFiles},
    KnownModel{"Mellum", "llama", "mellum", FimOrder::kSpm, kMellumFiles},
    // The older ones write no better with a path in front; the bundled one says that it knows files.
    KnownModel{"efim-boot", "", "efimboot", FimOrder::kPsm, kNoFiles},
    KnownModel{"random weights", "", "random", FimOrder::kPsm, kNoFiles},  // of tests
};

constexpr std::array<std::string_view, 6> kRepository = {
    "<|repo_name|>", "<|fim_repo|>", "<repo_name>", "<reponame>", "<fim-repo>", "<REPO>"};
constexpr std::array<std::string_view, 3> kFileSeparator = {"<|file_sep|>", "<file_sep>",
                                                            "<|file_separator|>"};

/// Lower-case letters and digits only: "Qwen2.5-Coder 7B" -> "qwen25coder7b".
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

bool has_word(std::string_view words, std::string_view word) {
  return (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

/// Converters fill in general.name carelessly ("LLaMA v2"), so the base name and the file's own
/// name count as well.
const KnownModel* find_known(const GgufFile& file) {
  const std::string_view architecture = file.string("general.architecture").value_or("");
  const std::array names = {folded(file.string("general.name").value_or("")),
                            folded(file.string("general.basename").value_or("")),
                            folded(std::filesystem::path(file.name()).filename().string())};
  const auto fits = [&](const KnownModel& known) {
    if (!known.architectures.empty() && !has_word(known.architectures, architecture)) return false;
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return name.find(known.name) != std::string::npos;
    });
  };
  const auto* const known = std::find_if(kKnown.begin(), kKnown.end(), fits);
  return known == kKnown.end() ? nullptr : known;
}

template <std::size_t kCount>
TokenId special_token(const Vocabulary& vocabulary,
                      const std::array<std::string_view, kCount>& texts) {
  for (const std::string_view text : texts)
    if (const TokenId id = special_token(vocabulary, text); id != kNoToken) return id;
  return kNoToken;
}

/// The family whose prefix, suffix and middle are all there. A whole family is proof enough that
/// they frame text, so that its tokens may be marked as ordinary ones.
const Family* find_family(const Vocabulary& vocabulary) {
  for (const Family& family : kFamilies) {
    const auto has = [&](std::string_view text) {
      return text.empty() || vocabulary.find(text) != kNoToken;
    };
    if (has(family.prefix) && has(family.suffix) && has(family.middle)) return &family;
  }
  return nullptr;
}

/// Converters give every Gemma the keys of CodeGemma. In the others these tokens are spare.
bool is_spare(const Vocabulary& vocabulary, TokenId token) {
  return vocabulary.kind(token) == TokenKind::kUnused ||
         vocabulary.text(token).starts_with("<unused");
}

/// The file's own tokens: those of its metadata first, else those that its vocabulary spells.
struct Found {
  FimTokens fim;
  bool by_metadata = false;
  const Family* family = nullptr;
  TokenId pad = kNoToken;
  TokenId end = kNoToken;
};

Found find_tokens(const GgufFile& file, const Vocabulary& vocabulary) {
  Found found;
  FimTokens& fim = found.fim;
  found.family = find_family(vocabulary);
  const auto named = [&](std::initializer_list<std::string_view> keys) {
    const TokenId token = token_by_key(file, vocabulary, keys);
    return token == kNoToken || is_spare(vocabulary, token) ? kNoToken : token;
  };
  fim.prefix = named({"fim_pre_token_id", "prefix_token_id"});
  fim.suffix = named({"fim_suf_token_id", "suffix_token_id"});
  fim.middle = named({"fim_mid_token_id", "middle_token_id"});
  fim.repository = named({"fim_rep_token_id"});
  fim.file_separator = named({"fim_sep_token_id"});
  found.pad = named({"fim_pad_token_id"});
  found.by_metadata = fim.prefix != kNoToken && fim.suffix != kNoToken;
  const Family* const family = found.family;
  if (!found.by_metadata) {
    fim.prefix = family == nullptr ? kNoToken : vocabulary.find(family->prefix);
    fim.suffix = family == nullptr ? kNoToken : vocabulary.find(family->suffix);
    fim.middle = family == nullptr ? kNoToken : vocabulary.find(family->middle);
  }
  if (fim.repository == kNoToken) fim.repository = special_token(vocabulary, kRepository);
  if (fim.file_separator == kNoToken)
    fim.file_separator = special_token(vocabulary, kFileSeparator);
  if (family != nullptr && found.pad == kNoToken) found.pad = vocabulary.find(family->pad);
  if (family != nullptr) found.end = vocabulary.find(family->end);
  return found;
}

/// The order that the tokens themselves speak for.
FimOrder order_of_tokens(const Found& found, const Vocabulary& vocabulary) {
  if (found.fim.middle == kNoToken || vocabulary.text(found.fim.prefix) == "[PREFIX]")
    return FimOrder::kSpm;
  return found.family != nullptr ? found.family->order : FimOrder::kPsm;
}

/// Order and reason, once there are tokens.
void judge(FimTokens& fim, const Found& found, const KnownModel* known,
           const Vocabulary& vocabulary) {
  const std::string source = found.by_metadata
                                 ? "the file's metadata names its tokens"
                                 : "tokens by text: " + std::string(vocabulary.text(fim.prefix));
  if (known != nullptr && known->order == FimOrder::kNone) {
    fim.reason = std::string(known->title) + " has FIM tokens, but was not trained with them";
  } else if (known != nullptr) {
    fim.order = fim.middle == kNoToken ? FimOrder::kSpm : known->order;
    fim.reason = std::string(known->title) + "; " + source;
  } else if (found.by_metadata) {
    fim.order = order_of_tokens(found, vocabulary);
    fim.reason = source + "; whether it was trained with them is not known here";
  } else {
    fim.reason = "the vocabulary has " + std::string(vocabulary.text(fim.prefix)) +
                 ", but this model is not known to be trained with it; [model.fim] in config.toml "
                 "overrides this";
  }
}

/// `fim` has the separator of files, which is most makers' mark and may be the user's choice.
FimFiles files_of(const Files& files, const FimTokens& fim, const Vocabulary& vocabulary) {
  FimFiles out;
  out.mark = std::ranges::count(kFileSeparator, files.mark) > 0
                 ? fim.file_separator
                 : special_token(vocabulary, files.mark);
  if (!files.mark.empty() && out.mark == kNoToken) return out;  // its own form cannot be written
  out.place = files.place;
  out.shows_others = files.shows_others;
  out.paths_are_comments = files.paths_are_comments;
  out.names_repository = files.after_repository.has_value();
  out.after_repository = files.after_repository.value_or("");
  out.before_path = files.before_path;
  out.after_path = files.place == Place::kNowhere ? "" : "\n";
  return out;
}

/// config.toml's [model.fim] replaces the recognized tokens.
Result<void> apply(const FimOverride& wanted, const Found& found, const Vocabulary& vocabulary,
                   FimTokens& fim) {
  if (wanted.empty()) return {};
  fim.prefix = found.fim.prefix;
  fim.suffix = found.fim.suffix;
  fim.middle = found.fim.middle;
  const auto take = [&](std::string_view key, const std::string& text,
                        TokenId& token) -> Result<void> {
    if (text.empty()) return {};
    token = vocabulary.find(text);
    if (token != kNoToken) return {};
    return fail(Fault::kBadInput,
                "config.toml: model.fim." + std::string(key) + ": " + vocabulary.file_name +
                    " has no token \"" + utf8::sanitized(text.substr(0, 80)) + "\"",
                "write the token as `efimd model info` or the model's card spells it");
  };
  for (const auto& taken :
       {take("prefix", wanted.prefix, fim.prefix), take("suffix", wanted.suffix, fim.suffix),
        take("middle", wanted.middle, fim.middle),
        take("repository", wanted.repository, fim.repository),
        take("file_separator", wanted.file_separator, fim.file_separator)})
    if (!taken) return taken;
  const bool tokens = fim.prefix != kNoToken && fim.suffix != kNoToken;
  fim.order = wanted.order.value_or(fim.middle == kNoToken ? FimOrder::kSpm : FimOrder::kPsm);
  fim.reason = "config.toml: [model.fim]";
  const bool complete = fim.order == FimOrder::kNone || tokens;
  if (!complete || (fim.order == FimOrder::kPsm && fim.middle == kNoToken))
    return fail(Fault::kBadInput,
                "config.toml: [model.fim]: " + vocabulary.file_name +
                    " names no FIM tokens, so prefix, suffix and (for psm) middle must be given",
                "write them as the model's card spells them");
  return {};
}

}  // namespace

Result<FimFormat> recognize_fim(const GgufFile& file, const Vocabulary& vocabulary,
                                const FimOverride& wanted) {
  const Found found = find_tokens(file, vocabulary);
  const KnownModel* const known = find_known(file);
  FimFormat format;
  format.fim = found.fim;
  if (found.fim.prefix == kNoToken || found.fim.suffix == kNoToken) {
    format.fim.reason = "the vocabulary has no fill-in-the-middle tokens";
  } else {
    judge(format.fim, found, known, vocabulary);
  }
  FimTokens& fim = format.fim;
  if (auto applied = apply(wanted, found, vocabulary, fim); !applied)
    return tl::unexpected<Error>(std::move(applied.error()));
  if (known != nullptr) fim.files = files_of(known->files, fim, vocabulary);
  // A model says of itself that it was trained with other files in front.
  if (file.integer("efim.repository_trained").value_or(0) != 0)
    fim.files = files_of(kOwnFiles, fim, vocabulary);
  format.frame = {found.fim.prefix, found.fim.suffix,   found.fim.middle,
                  fim.prefix,       fim.suffix,         fim.middle,
                  fim.repository,   fim.file_separator, fim.files.mark,
                  found.pad,        found.end,          special_token(vocabulary, "<filename>")};
  std::erase(format.frame, kNoToken);
  if (fim.order == FimOrder::kNone) fim.prefix = fim.suffix = fim.middle = kNoToken;
  return format;
}

TokenId token_by_key(const GgufFile& file, const Vocabulary& vocabulary,
                     std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const std::int64_t id = file.integer("tokenizer.ggml." + std::string(key)).value_or(kNoToken);
    if (id >= 0 && id < vocabulary.size()) return static_cast<TokenId>(id);
  }
  return kNoToken;
}

}  // namespace efimd::engine
