#include "daemon/completion/generate/healing.h"

#include <algorithm>

namespace efimd::completion {

int typed_tail(std::span<const prompt::CoveredToken> increment,
               const engine::Tokenizer& tokenizer) {
  int count = 0;
  while (count < kHealedTokensMax && !increment.empty()) {
    const prompt::CoveredToken& last = increment.back();
    if (last.generated || last.bytes != tokenizer.bytes(last.id).size()) break;
    increment = increment.first(increment.size() - 1);
    ++count;
  }
  return count;
}

std::string_view Spelling::take(std::string_view bytes) {
  const std::size_t spelled = std::min(bytes.size(), rest_.size());
  rest_.erase(0, spelled);
  return bytes.substr(spelled);
}

std::optional<Mismatch> find_mismatch(const TypedPlace& place,
                                      std::span<const engine::TokenId> draft,
                                      engine::Sampler& sampler, Spelling& spelling) {
  const auto count = static_cast<int>(draft.size());
  for (int kept = 0; kept < count; ++kept) {
    const std::span<const float> logits =
        place.engine.logits(place.sequence, count - kept + place.behind);
    if (logits.empty()) return std::nullopt;
    const engine::TokenId drafted = draft[static_cast<std::size_t>(kept)];
    const engine::TokenId token = spelling.choose(sampler, logits);
    if (token != drafted) return Mismatch{kept, token, spelling.chance(token, logits)};
    spelling.take(place.engine.tokenizer().bytes(token));
  }
  return std::nullopt;
}

}  // namespace efimd::completion
