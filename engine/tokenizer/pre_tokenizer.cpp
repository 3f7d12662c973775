#include "engine/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace efimd::engine {
namespace {

// The models' own rules. \s, \p{…} are Unicode's (UCP). Each rule's expressions apply one after
// another to what the one before left apart.

constexpr const char* kDigit = R"(\p{N})";
constexpr const char* kLineEnd = R"([\r\n])";

// GPT-2's: contractions, words, numbers and the rest, each with one space before it. The last blank
// of a run goes to the next word.
constexpr const char* kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
// Llama 3's line of rules: one sign goes to the word after it, newlines to the signs before them.
#define EFIMD_WORDS R"('(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])|[^\r\n\p{L}\p{N}]?\p{L}+|)"
#define EFIMD_BLANKS R"(|\s*[\r\n]+|\s+(?!\S)|\s+)"
constexpr const char* kLlama3 = EFIMD_WORDS R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)" EFIMD_BLANKS;
constexpr const char* kQwen2 = EFIMD_WORDS R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)" EFIMD_BLANKS;
constexpr const char* kSeedCoder = EFIMD_WORDS R"(\p{N}| ?[^\s\p{L}\p{N}\r\n]+)" EFIMD_BLANKS;
#undef EFIMD_WORDS
#undef EFIMD_BLANKS

// Han to U+9FA5, all from Samaritan to Han, Hangul: marks that \p{L} leaves between letters.
constexpr const char* kAsian = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
// Letters that have case, as the model's makers listed them: of no version of Unicode.
constexpr const char* kDeepseekLlmWord =
    R"(\s?[)"
    R"(A-Za-z\x{00B5}\x{00C0}-\x{00D6}\x{00D8}-\x{00F6}\x{00F8}-\x{01BA}\x{01BC}-\x{01BF})"
    R"(\x{01C4}-\x{0293}\x{0295}-\x{02AF}\x{0370}-\x{0373}\x{0376}\x{0377}\x{037B}-\x{037D})"
    R"(\x{037F}\x{0386}\x{0388}-\x{038A}\x{038C}\x{038E}-\x{03A1}\x{03A3}-\x{03F5})"
    R"(\x{03F7}-\x{0481}\x{048A}-\x{052F}\x{0531}-\x{0556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5})"
    R"(\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D})"
    R"(\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D}\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4})"
    R"(\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3})"
    R"(\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107})"
    R"(\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126}\x{2128}\x{212A}-\x{212D})"
    R"(\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184})"
    R"(\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D})"
    R"(\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF})"
    R"(\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2})"
    R"(\x{118A0}-\x{118DF}\x{1E900}-\x{1E943})"
    R"(]+)";
// U+3000 is left out, although the makers list it, because every tokenizer takes it for a blank.
constexpr const char* kDeepseekLlmSigns =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}\x{3002}]+)";

constexpr std::array kDefault = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"};
constexpr std::array kGpt2Alone = {kGpt2};
constexpr std::array kDigitsThenGpt2 = {kDigit, kGpt2};
constexpr std::array kDeepseekCoder = {kLineEnd, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kAsian, kDigit};
constexpr std::array kDeepseekLlm = {kLineEnd,  kDeepseekLlmWord, kDeepseekLlmSigns,
                                     R"(\s+$)", kAsian,           R"(\p{N}+)"};
constexpr std::array kLlama3Alone = {kLlama3};
constexpr std::array kQwen2Alone = {kQwen2};
constexpr std::array kSeedCoderAlone = {kSeedCoder};

constexpr std::array kRules = {
    PreTokenizerRule{"default", kDefault},
    PreTokenizerRule{"gpt-2", kGpt2Alone},
    PreTokenizerRule{"mellum", kGpt2Alone},
    PreTokenizerRule{"starcoder", kDigitsThenGpt2},
    PreTokenizerRule{"refact", kDigitsThenGpt2},  // also Granite Code's files carry it
    PreTokenizerRule{"smollm", kDigitsThenGpt2},
    PreTokenizerRule{"deepseek-coder", kDeepseekCoder},
    PreTokenizerRule{"deepseek-llm", kDeepseekLlm},
    PreTokenizerRule{"dbrx", kLlama3Alone},  // Granite 4's files carry it
    PreTokenizerRule{"llama-bpe", kLlama3Alone, true, true},
    PreTokenizerRule{"qwen2", kQwen2Alone},
    PreTokenizerRule{"deepseek-r1-qwen", kQwen2Alone},
    PreTokenizerRule{"seed-coder", kSeedCoderAlone},
};

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
using Match = std::unique_ptr<pcre2_match_data, FreeMatch>;

using EmitPiece = std::function<void(std::string_view)>;

void emit_bounded(std::string_view piece, const EmitPiece& emit) {
  while (piece.size() > PreTokenizer::kPieceBytesMax) {
    std::size_t cut = PreTokenizer::kPieceBytesMax;
    while (utf8::is_continuation(piece[cut])) --cut;
    emit(piece.substr(0, cut));
    piece.remove_prefix(cut);
  }
  if (!piece.empty()) emit(piece);
}

}  // namespace

const PreTokenizerRule* find_pre_tokenizer_rule(std::string_view name) {
  const auto* const found =
      std::find_if(kRules.begin(), kRules.end(),
                   [&](const PreTokenizerRule& rule) { return rule.name == name; });
  return found == kRules.end() ? nullptr : found;
}

std::string pre_tokenizer_rule_names() {
  std::string names;
  for (const PreTokenizerRule& rule : kRules)
    names += (names.empty() ? "" : ", ") + std::string(rule.name);
  return names;
}

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;

  /// The next match in `text` from `begin` on: its range, or an empty one at the end. A pattern
  /// that runs into PCRE2's limits (no text is known to) matches nothing further: the rest is one
  /// piece.
  std::pair<std::size_t, std::size_t> find(std::string_view text, std::size_t begin,
                                           pcre2_match_data* match) const {
    const int groups =
        pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), begin,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match, nullptr);
    if (groups < 0) return {text.size(), text.size()};
    const PCRE2_SIZE* const range = pcre2_get_ovector_pointer(match);
    return {range[0], range[1]};
  }

  /// Pieces of `text` by `patterns`, the first of them first. Each pattern sees a piece of the one
  /// before as a text of its own: what stands after it is the end.
  static void split(std::string_view text, std::span<const Pattern> patterns,
                    std::span<const Match> matches, const EmitPiece& emit) {
    if (text.empty()) return;
    if (patterns.empty()) return emit_bounded(text, emit);
    const auto descend = [&](std::size_t begin, std::size_t end) {
      split(text.substr(begin, end - begin), patterns.subspan(1), matches.subspan(1), emit);
    };
    for (std::size_t at = 0; at < text.size();) {
      const auto [begin, end] = patterns[0].find(text, at, matches[0].get());
      descend(at, begin);
      descend(begin, end);
      at = end;
    }
  }
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::for_rule(const PreTokenizerRule& rule) {
  PreTokenizer splitter;
  for (const char* const pattern : rule.patterns) {
    int error = 0;
    PCRE2_SIZE error_byte = 0;
    pcre2_code* const code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP, &error, &error_byte, nullptr);
    if (code == nullptr)
      return fail(Fault::kUnsupported,
                  "PCRE2 refuses a pre-tokenizer rule with error " + std::to_string(error),
                  "install a PCRE2 with Unicode support");
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // without JIT, matching interprets
    splitter.patterns_.push_back({std::unique_ptr<pcre2_code, FreeCode>(code)});
  }
  return splitter;
}

void PreTokenizer::split(std::string_view text, const EmitPiece& piece) const {
  std::vector<Match> matches;
  for (const Pattern& pattern : patterns_) {
    matches.emplace_back(pcre2_match_data_create_from_pattern(pattern.code.get(), nullptr));
    if (!matches.back()) return emit_bounded(text, piece);
  }
  Pattern::split(text, patterns_, matches, piece);
}

}  // namespace efimd::engine
