#include "engine/tokenizer/unigram.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"

namespace efimd::engine {

void UnigramSplitter::split(std::string_view word, const TokenIndex& index,
                            std::span<const float> scores, float unknown_score,
                            std::vector<Symbol>& symbols) {
  constexpr double kNoWay = -std::numeric_limits<double>::infinity();
  steps_.assign(word.size() + 1, {kNoWay, 0, kNoToken});
  steps_[0].score = 0;
  const auto offer = [&](std::size_t begin, std::size_t end, TokenId token, double score) {
    const double sum = steps_[begin].score + score;
    if (sum > steps_[end].score) steps_[end] = {sum, static_cast<std::uint32_t>(begin), token};
  };
  for (std::size_t at = 0, length = 0; at < word.size(); at += length) {
    length = static_cast<std::size_t>(utf8::decode(word, at).length);
    bool covered = false;
    for (std::size_t end = at + length;
         end <= std::min(word.size(), at + index.text_bytes_max());) {
      const TokenId token = index.find(word.substr(at, end - at));
      if (token != kNoToken) offer(at, end, token, scores[static_cast<std::size_t>(token)]);
      covered = covered || (token != kNoToken && end == at + length);
      end += end < word.size() ? static_cast<std::size_t>(utf8::decode(word, end).length) : 1;
    }
    if (!covered) offer(at, at + length, kNoToken, unknown_score);
  }
  for (std::size_t end = word.size(); end > 0; end = steps_[end].begin)
    symbols.push_back({steps_[end].token, steps_[end].begin});
  std::reverse(symbols.begin(), symbols.end());
}

}  // namespace efimd::engine
