#include "engine/tokenizer/token_index.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>

namespace efimd::engine {
namespace {

std::uint64_t hash_of(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace

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

}  // namespace efimd::engine
