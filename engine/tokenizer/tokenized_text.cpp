#include "engine/tokenizer/tokenized_text.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <utility>

#include "base/utf8.h"

namespace efimd::engine {
namespace {

/// Whether the tokens spell `text` with sentencepiece's dummy space in front.
bool has_dummy_space(std::string_view text, std::span<const TokenId> tokens,
                     const Tokenizer& tokenizer) {
  if (tokens.empty() || !tokenizer.bytes(tokens.front()).starts_with(' ')) return false;
  std::size_t spelled = 0;
  for (const TokenId token : tokens) spelled += tokenizer.bytes(token).size();
  return spelled == text.size() + 1;
}

/// Appends to `ends` where each token's bytes end in `text`, as offsets from `base`.
///
/// Tokens spell the text, with two exceptions: a dummy space before it, and characters that the
/// vocabulary lacks. Those have no token, or an unknown token without bytes. The last token ends
/// where the text does.
void cover(std::string_view text, std::span<const TokenId> tokens, const Tokenizer& tokenizer,
           std::size_t base, std::vector<std::uint32_t>& ends) {
  const std::size_t first = ends.size();
  std::size_t at = 0;
  bool dummy_space = has_dummy_space(text, tokens, tokenizer);
  for (const TokenId token : tokens) {
    std::string_view bytes = tokenizer.bytes(token);
    if (std::exchange(dummy_space, false)) {
      at += bytes.size() - 1;
    } else if (bytes.empty()) {
      at += static_cast<std::size_t>(utf8::decode(text, at).length);
    } else if (const std::size_t begin = text.find(bytes, at); begin != std::string_view::npos) {
      if (begin > at && ends.size() > first) ends.back() = static_cast<std::uint32_t>(base + begin);
      at = begin + bytes.size();
    }
    ends.push_back(static_cast<std::uint32_t>(base + at));
  }
  if (ends.size() > first) ends.back() = static_cast<std::uint32_t>(base + text.size());
}

}  // namespace

void TokenizedText::set(std::string_view text) {
  assert(text.size() <= std::numeric_limits<std::uint32_t>::max());
  encode_part(text, 0, text.size());
  tokens_ = part_tokens_;
  ends_ = part_ends_;
}

TokenizedText::Change TokenizedText::replace(std::string_view text, std::size_t begin,
                                             std::size_t removed, std::size_t inserted) {
  assert(begin + inserted <= text.size());
  assert(text.size() <= std::numeric_limits<std::uint32_t>::max());
  // Both bytes of a seam are the same before and after the edit, so that it is one in both texts.
  std::size_t from = begin - std::min<std::size_t>(begin, 1);
  while (from > 0 && !tokenizer_->is_seam(text[from - 1], text[from])) --from;
  std::size_t to = std::min(begin + inserted + 1, text.size());
  while (to < text.size() && !tokenizer_->is_seam(text[to - 1], text[to])) ++to;
  const auto grown = static_cast<std::ptrdiff_t>(inserted) - static_cast<std::ptrdiff_t>(removed);
  const std::size_t first = from == 0 ? 0 : tokens_before(from);
  const std::size_t last =
      to == text.size()
          ? tokens_.size()
          : tokens_before(static_cast<std::size_t>(static_cast<std::ptrdiff_t>(to) - grown));
  encode_part(text, from, to);
  return splice(first, last, grown);
}

std::size_t TokenizedText::tokens_before(std::size_t byte) const {
  return static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), byte) -
                                  ends_.begin());
}

void TokenizedText::encode_part(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view part = text.substr(begin, end - begin);
  part_tokens_ = tokenizer_->encode(part, begin == 0 ? where_ : Fragment::kInside);
  part_ends_.clear();
  cover(part, part_tokens_, *tokenizer_, begin, part_ends_);
}

/// Replaces tokens [first, last) by the encoded part, and moves the ends after it. Only tokens that
/// differ count as changed.
TokenizedText::Change TokenizedText::splice(std::size_t first, std::size_t last,
                                            std::ptrdiff_t grown) {
  const auto moved = [&](std::uint32_t end) { return static_cast<std::uint32_t>(end + grown); };
  Change change{first, last - first, part_tokens_.size()};
  std::size_t skipped = 0;
  const auto same = [&](std::size_t old_index, std::size_t new_index, bool behind) {
    const std::uint32_t end = ends_[old_index];
    return tokens_[old_index] == part_tokens_[new_index] &&
           (behind ? moved(end) : end) == part_ends_[new_index];
  };
  while (change.removed > 0 && change.inserted > 0 && same(change.begin, skipped, false)) {
    ++change.begin, ++skipped;
    --change.removed, --change.inserted;
  }
  while (change.removed > 0 && change.inserted > 0 &&
         same(change.begin + change.removed - 1, skipped + change.inserted - 1, true))
    --change.removed, --change.inserted;

  const auto replace_in = [&](auto& whole, const auto& part) {
    const auto at = whole.begin() + static_cast<std::ptrdiff_t>(change.begin);
    const auto source = part.begin() + static_cast<std::ptrdiff_t>(skipped);
    const auto overwritten = static_cast<std::ptrdiff_t>(std::min(change.removed, change.inserted));
    std::copy(source, source + overwritten, at);
    if (change.removed > change.inserted)
      whole.erase(at + overwritten, at + static_cast<std::ptrdiff_t>(change.removed));
    else
      whole.insert(at + overwritten, source + overwritten,
                   source + static_cast<std::ptrdiff_t>(change.inserted));
  };
  replace_in(tokens_, part_tokens_);
  replace_in(ends_, part_ends_);
  for (std::size_t i = change.begin + change.inserted; i < ends_.size(); ++i)
    ends_[i] = moved(ends_[i]);
  return change;
}

}  // namespace efimd::engine
