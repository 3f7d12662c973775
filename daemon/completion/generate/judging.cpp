#include "daemon/completion/generate/judging.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "daemon/completion/generate/healing.h"
#include "daemon/completion/generate/token_probability.h"

namespace efimd::completion {

namespace {

using engine::TokenId;

/// The tokens at the end of a sequence whose logits are there: typed ones that may be healed, and the
/// draft.
class Path {
 public:
  Path(const engine::Engine& engine, engine::SequenceId sequence, std::size_t tokens)
      : engine_(engine),
        sequence_(sequence),
        tokens_(engine.held(sequence).last(tokens)),
        sums_(tokens + 1) {}

  bool goes_on_with(std::size_t at, TokenId token) const {
    return at < tokens_.size() && tokens_[at] == token;
  }
  /// The logits before the token at this place; empty if they are gone.
  std::span<const float> logits(std::size_t at) const {
    return engine_.logits(sequence_, static_cast<int>(tokens_.size() - at));
  }
  /// Several candidates ask at the same place: the sum over the vocabulary is taken once.
  double probability(std::size_t at, TokenId token) {
    const std::span<const float> row = logits(at);
    if (!sums_[at]) sums_[at] = softmax_of(row);
    return probability_of(token, row, *sums_[at]);
  }

 private:
  const engine::Engine& engine_;
  const engine::SequenceId sequence_;
  const std::span<const TokenId> tokens_;
  std::vector<std::optional<Softmax>> sums_;
};

std::vector<JudgedToken> judge(Path& path, const std::vector<TokenId>& tokens,
                               std::optional<Spelling> spelling, std::size_t typed,
                               const engine::Tokenizer& tokenizer) {
  std::vector<JudgedToken> judged;
  std::size_t bytes = 0;
  double chance = 1;  // of the tokens since the last judged one
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const std::span<const float> logits = path.logits(at);
    if (logits.empty()) break;
    const std::string_view token = tokenizer.bytes(tokens[at]);
    const bool spells = spelling && !spelling->done();
    chance *= spells ? spelling->chance(tokens[at], logits) : path.probability(at, tokens[at]);
    if (spells && chance <= 0) break;  // bytes that no token spells, as of half a code point
    if (spells) spelling->take(token);
    bytes += token.size();
    if (bytes > typed) {
      judged.push_back({bytes - typed, chance});
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
  std::optional<Spelling> spelling;
  if (!typed.empty()) spelling.emplace(setting.typed->order, typed);
  Path path(setting.engine, sequence, healed + drafted);
  for (const std::string& text : setting.candidates)
    all.push_back(judge(path, tokenizer.encode(typed + text, engine::Fragment::kInside), spelling,
                        typed.size(), tokenizer));
  return all;
}

}  // namespace efimd::completion
