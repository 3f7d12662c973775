#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace efimd::engine {

/// Tokens by the bytes that they spell: a flat hash table, because encoding looks every word up.
///
/// Thread: any, once filled. Owns no texts: they outlive it.
class TokenIndex {
 public:
  /// Whether a token's text, encoded alone, becomes that one token. Most do, which spares the
  /// merging; some do not, because no merges lead there.
  enum class Whole : std::uint8_t { kNotTried, kYes, kNo };

  explicit TokenIndex(std::size_t tokens = 0);
  /// The first token of a text keeps it. Empty texts and more tokens than announced are dropped.
  void add(std::string_view text, TokenId token);

  /// kNoToken when no token spells `text`.
  TokenId find(std::string_view text) const;
  std::size_t text_bytes_max() const { return text_bytes_max_; }

  Whole whole(TokenId token) const { return state(token).load(std::memory_order_relaxed); }
  /// Remembers what encoding showed; any thread that tries finds the same.
  void remember(TokenId token, Whole whole) const {
    state(token).store(whole, std::memory_order_relaxed);
  }

 private:
  struct Slot {
    std::uint32_t hash = 0;
    TokenId token = kNoToken;
    std::string_view text;
  };
  const Slot& slot_of(std::string_view text, std::uint64_t hash) const;
  std::atomic<Whole>& state(TokenId token) const {
    return states_[static_cast<std::size_t>(token)];
  }

  std::vector<Slot> slots_;  ///< a power of two, at most half full; linear probing
  std::size_t tokens_max_;
  std::unique_ptr<std::atomic<Whole>[]> states_;  ///< by token
  std::size_t text_bytes_max_ = 0;
};

}  // namespace efimd::engine
