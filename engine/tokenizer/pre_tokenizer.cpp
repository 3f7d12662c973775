#include "engine/tokenizer/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <cstdint>
#include <span>
#include <utility>

#include "base/utf8.h"

namespace efimd::engine {
namespace {

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
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT, matching interprets
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
