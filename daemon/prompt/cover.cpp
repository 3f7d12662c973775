#include "daemon/prompt/cover.h"

#include <algorithm>
#include <span>

namespace efimd::prompt {

namespace {

/// Leading tokens whose bytes stand in `text` from `begin` on, appended to `out`; returns the byte
/// after the last.
std::size_t append_matching(std::vector<CoveredToken>& out, std::span<const CoveredToken> tokens,
                            std::string_view text, std::size_t begin,
                            const engine::Tokenizer& tokenizer) {
  for (const CoveredToken& token : tokens) {
    const std::string_view bytes = tokenizer.bytes(token.id);
    if (bytes.empty() || bytes.size() != token.bytes || text.substr(begin, bytes.size()) != bytes)
      break;
    out.push_back(token);
    begin += token.bytes;
  }
  return begin;
}

/// How many leading tokens end exactly at `byte`; -1 when none does.
std::ptrdiff_t tokens_up_to(std::span<const CoveredToken> tokens, std::size_t byte) {
  std::size_t end = 0;
  std::ptrdiff_t count = 0;
  while (end < byte && static_cast<std::size_t>(count) < tokens.size())
    end += tokens[static_cast<std::size_t>(count++)].bytes;
  return end == byte ? count : -1;
}

std::size_t bytes_of(std::span<const CoveredToken> tokens) {
  std::size_t sum = 0;
  for (const CoveredToken& token : tokens) sum += token.bytes;
  return sum;
}

/// The path through the offered tokens when at least one of them can be adopted, else the old
/// increment's.
std::vector<CoveredToken> kept_tokens(std::string_view increment, const Anchor& anchor,
                                      const engine::Tokenizer& tokenizer) {
  std::vector<CoveredToken> kept;
  append_matching(kept, anchor.increment, increment, 0, tokenizer);
  if (anchor.offered.empty()) return kept;
  const std::ptrdiff_t shared = tokens_up_to(kept, anchor.offered_begin);
  if (shared < 0) return kept;
  std::vector<CoveredToken> adopted(kept.begin(), kept.begin() + shared);
  append_matching(adopted, anchor.offered, increment, anchor.offered_begin, tokenizer);
  return adopted.size() > static_cast<std::size_t>(shared) ? adopted : kept;
}

/// Drops typed tokens from the end until the rest ends at a token border at or before `byte`.
void drop_typed_behind(std::vector<CoveredToken>& tokens, std::size_t byte) {
  std::size_t end = bytes_of(tokens);
  while (end > byte && !tokens.empty() && !tokens.back().generated) {
    end -= tokens.back().bytes;
    tokens.pop_back();
  }
}

}  // namespace

std::vector<CoveredToken> cover(std::string_view increment, const Anchor& anchor,
                                const engine::Tokenizer& tokenizer) {
  std::vector<CoveredToken> tokens = kept_tokens(increment, anchor, tokenizer);
  drop_typed_behind(tokens, tokenizer.line_cut(increment));
  const std::size_t covered = bytes_of(tokens);
  const std::string_view rest = increment.substr(covered);
  if (rest.empty()) return tokens;
  std::size_t left = rest.size();
  for (const engine::TokenId id : tokenizer.encode(rest, engine::Fragment::kInside)) {
    const std::size_t bytes = std::min(tokenizer.bytes(id).size(), left);
    tokens.push_back({id, bytes, false});
    left -= bytes;
  }
  // A vocabulary without byte fallback has unknown tokens, which have no bytes of their own.
  if (left > 0 && !tokens.empty()) tokens.back().bytes += left;
  return tokens;
}

}  // namespace efimd::prompt
