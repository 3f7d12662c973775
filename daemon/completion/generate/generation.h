#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "daemon/completion/generate/generate.h"
#include "daemon/completion/generate/healing.h"
#include "engine/decode/sampler.h"

namespace efimd::completion {

/// One generation in steps, so that several can share a step of the engine. First comes the typed
/// end, if there is one, then token by token.
///
/// Call begin(); then, as long as pending() has tokens, evaluate them and call go_on().
/// Thread: engine.
class Generation {
 public:
  /// A first token, and what it was among.
  struct Choice {
    engine::TokenId token = engine::kNoToken;
    double probability = 0;
  };

  /// `sequence` holds what setting.sequence does; all of the arguments outlive it.
  Generation(const GenerationSetting& setting, engine::SequenceId sequence, const Options& options,
             StopRules& rules);

  /// Call it before begin() if alternatives() will be needed.
  void keep_alternatives() { keeps_alternatives_ = true; }
  /// Heals, and chooses the first token. Fails as Engine::prefill() does.
  Result<void> begin();
  /// The same from the place where `other` chose its first token, with another choice of
  /// alternatives(). `other` has begun and gone no further.
  void begin_beside(const Generation& other, const Choice& first);
  /// At most `count` tokens that could have been chosen instead of the first, likeliest first.
  /// Neither their text nor the first token's is a prefix of the other.
  std::vector<Choice> alternatives(int count) const;

  /// The token to evaluate next, with the draft after it; empty if the generation has ended.
  std::span<const engine::TokenId> pending();
  /// Leaves the draft out of what is pending: there is no room for it.
  void drop_draft() { pending_.resize(1); }
  /// To be called once the logits after each of pending() are there. Fails as begin() does.
  Result<void> go_on();
  /// What the last step took, told after go_on().
  void stepped(double ms);
  void end_for(End end) { end_ = end; }

  Generated finish();

 private:
  Result<void> heal();
  /// Goes through the last `drafted` tokens that the sequence holds as far as the model chooses them,
  /// and rewinds the sequence to there.
  Result<void> judge(int drafted);
  /// From the logits after the token that is `back` places before the sequence's last.
  Result<void> choose_next(int back = 0);
  Result<void> keep_typed();
  bool has_ended();
  void remember_first(std::span<const float> logits);
  void take(engine::TokenId token, double probability);

  const GenerationSetting& setting_;
  const engine::SequenceId sequence_;
  const Options& options_;
  StopRules& rules_;
  const engine::Tokenizer& tokenizer_;
  engine::Sampler sampler_;
  const std::chrono::steady_clock::time_point deadline_;
  std::vector<engine::TokenId> prompt_;  ///< as it was typed; empty without a typed end
  std::vector<engine::TokenId> pending_;
  int accepted_last_ = 0;             ///< of pending_'s draft
  std::optional<Spelling> spelling_;  ///< while typed bytes are still to be spelled
  // The state at the choice of the first token, for alternatives().
  bool keeps_alternatives_ = false;
  std::vector<float> first_logits_;
  std::optional<Spelling> first_spelling_;
  Generated result_;
  std::optional<End> end_;
};

}  // namespace efimd::completion
