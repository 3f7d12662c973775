#include "engine/decode/spelling.h"

#include <algorithm>
#include <tuple>

namespace efimd::engine {

ByteOrder::ByteOrder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {
  for (TokenId token = 0; token < tokenizer.size(); ++token)
    if (!bytes(token).empty() && !tokenizer.is_control(token)) tokens_.push_back(token);
  std::ranges::sort(tokens_, [&](TokenId a, TokenId b) {
    return std::tuple(bytes(a), a) < std::tuple(bytes(b), b);
  });
}

// A token that ends at `depth` sorts before those that go on, and below every byte.
std::span<const TokenId> ByteOrder::narrow(std::span<const TokenId> range, std::size_t depth,
                                           char byte) const {
  const auto next = [&](TokenId token) {
    const std::string_view text = bytes(token);
    return text.size() > depth ? static_cast<unsigned char>(text[depth]) : -1;
  };
  const int wanted = static_cast<unsigned char>(byte);
  const auto begin = std::ranges::lower_bound(range, wanted, {}, next);
  const auto end = std::ranges::upper_bound(begin, range.end(), wanted, {}, next);
  return {begin, end};
}

std::span<const TokenId> ByteOrder::beginning_with(std::string_view text) const {
  std::span<const TokenId> range = tokens_;
  for (std::size_t depth = 0; depth < text.size() && !range.empty(); ++depth)
    range = narrow(range, depth, text[depth]);
  return range;
}

std::vector<TokenId> ByteOrder::fitting(std::string_view rest) const {
  std::vector<TokenId> fit;
  std::span<const TokenId> range = tokens_;
  for (std::size_t depth = 0; depth < rest.size() && !range.empty(); ++depth) {
    range = narrow(range, depth, rest[depth]);
    if (depth + 1 == rest.size()) break;
    // The shortest stand first: those that end here spell a beginning of `rest`.
    for (const TokenId token : range) {
      if (bytes(token).size() != depth + 1) break;
      fit.push_back(token);
    }
  }
  fit.insert(fit.end(), range.begin(), range.end());
  return fit;
}

}  // namespace efimd::engine
