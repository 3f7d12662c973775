#include "daemon/completion/generate/judging.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "daemon/completion/generate/token_probability.h"

namespace efimd::completion {

namespace {

using engine::TokenId;

/// The tokens at the end of a sequence whose logits are there: typed ones that may be healed, and the
/// draft. Candidates often ask at the same place, where the sum over the vocabulary is taken once.
class Path {
 public:
  Path(const GenerationSetting& setting, engine::SequenceId sequence, std::size_t tokens)
      : setting_(setting),
        sequence_(sequence),
        tokens_(setting.engine.held(sequence).last(tokens)) {}

  bool goes_on_with(std::size_t at, TokenId token) const {
    return at < tokens_.size() && tokens_[at] == token;
  }
  /// Of the token at this place, among those that spell `rest` or a part of it; among all if that is
  /// empty. nullopt if the logits are gone, or if it spells something else.
  std::optional<double> probability(std::size_t at, TokenId token, std::string_view rest) {
    const std::string_view bytes = setting_.engine.tokenizer().bytes(token);
    if (!bytes.starts_with(rest) && !rest.starts_with(bytes)) return std::nullopt;
    const std::span<const float> logits =
        setting_.engine.logits(sequence_, static_cast<int>(tokens_.size() - at));
    if (logits.empty()) return std::nullopt;
    return probability_of(token, logits, sum_at(at, logits, rest));
  }

 private:
  struct Sum {
    std::size_t at;
    std::string rest;
    Softmax softmax;
  };
  const Softmax& sum_at(std::size_t at, std::span<const float> logits, std::string_view rest) {
    const auto known = std::ranges::find_if(
        sums_, [&](const Sum& sum) { return sum.at == at && sum.rest == rest; });
    if (known != sums_.end()) return known->softmax;
    std::vector<float> fitting;
    if (!rest.empty())
      for (const TokenId id : setting_.typed->order.fitting(rest))
        if (static_cast<std::size_t>(id) < logits.size())
          fitting.push_back(logits[static_cast<std::size_t>(id)]);
    sums_.push_back({at, std::string(rest), softmax_of(rest.empty() ? logits : fitting)});
    return sums_.back().softmax;
  }

  const GenerationSetting& setting_;
  const engine::SequenceId sequence_;
  const std::span<const TokenId> tokens_;
  std::vector<Sum> sums_;
};

std::vector<JudgedToken> judge(Path& path, std::string_view typed, const std::string& text,
                               const engine::Tokenizer& tokenizer) {
  std::vector<JudgedToken> judged;
  std::size_t bytes = 0;
  double chance = 1;  // of the tokens since the last judged one
  const auto tokens = tokenizer.encode(std::string(typed).append(text), engine::Fragment::kInside);
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const auto own = path.probability(at, tokens[at], typed.substr(std::min(bytes, typed.size())));
    if (!own) break;
    chance *= *own;
    bytes += tokenizer.bytes(tokens[at]).size();
    if (bytes > typed.size()) {
      judged.push_back({bytes - typed.size(), chance});
      chance = 1;
    }
    if (!path.goes_on_with(at, tokens[at])) break;
  }
  return judged;
}

}  // namespace

std::vector<std::vector<JudgedToken>> judge_candidates(const GenerationSetting& setting,
                                                       engine::SequenceId sequence) {
  std::vector<std::vector<JudgedToken>> all;
  if (setting.candidates.empty()) return all;
  const engine::Tokenizer& tokenizer = setting.engine.tokenizer();
  const std::span<const TokenId> held = setting.engine.held(sequence);
  const auto drafted = static_cast<std::size_t>(setting.drafted);
  const auto healed = static_cast<std::size_t>(setting.typed ? setting.typed->tokens : 0);
  std::string typed;
  for (const TokenId token : held.last(healed + drafted).first(healed))
    typed += tokenizer.bytes(token);
  Path path(setting, sequence, healed + drafted);
  for (const std::string& text : setting.candidates)
    all.push_back(judge(path, typed, text, tokenizer));
  return all;
}

}  // namespace efimd::completion
