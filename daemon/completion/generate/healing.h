#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/generate/token_probability.h"
#include "daemon/prompt/anchor.h"
#include "engine/decode/sampler.h"
#include "engine/decode/spelling.h"
#include "engine/engine.h"

// Words broken at the cursor. The rule in full: docs/efim.md.
//
//   at most the last three typed tokens may be chosen anew, of those that spell the same
//        bytes.

namespace efimd::completion {

/// Tokens of a typed text's end that are healed. With 3, the tokens of the whole text stay possible
/// at 99.99 % of 7,500 cursors in two BPE vocabularies; with 1 at 90 %.
inline constexpr int kHealedTokensMax = engine::Engine::kLogitsRowsKept - 2;

/// How many tokens at the end of `increment` can be healed: at most kHealedTokensMax. Only typed
/// tokens count, not generated ones, and only those that cover their own bytes.
int typed_tail(std::span<const prompt::CoveredToken> increment, const engine::Tokenizer& tokenizer);

/// The bytes of the typed tail while tokens are chosen that spell them.
///
/// The tail's tokens are the draft: they were evaluated in the prompt's step, and the logits before
/// each were kept. A token fits if its bytes are a prefix of the bytes still to be spelled, or the
/// other way round. A draft token stands if the sampler chooses it among those that fit. From the
/// first mismatch on, tokens that fit are chosen and evaluated one by one until all bytes are
/// spelled. The last may go on after the cursor.
class Spelling {
 public:
  Spelling(const engine::ByteOrder& order, std::string rest)
      : order_(&order), rest_(std::move(rest)) {}

  bool done() const { return rest_.empty(); }
  /// kNoToken if no token fits, or none of those may be chosen.
  engine::TokenId choose(engine::Sampler& sampler, std::span<const float> logits) const {
    return sampler.choose_among(logits, fitting());
  }
  std::vector<engine::TokenId> fitting() const { return order_->fitting(rest_); }
  /// The probability of `token` among those that fit.
  double chance(engine::TokenId token, std::span<const float> logits) const {
    return probability_among(token, logits, fitting());
  }
  /// Counts the bytes of a token that fits as spelled; returns those that go on after the cursor.
  std::string_view take(std::string_view bytes);

 private:
  const engine::ByteOrder* order_;
  std::string rest_;
};

/// The first mismatch between the draft and the model's choices.
struct Mismatch {
  int kept = 0;                              ///< leading draft tokens that stand
  engine::TokenId token = engine::kNoToken;  ///< chosen after them; kNoToken: nothing fits
  double probability = 0;                    ///< of the token, among those that fit
};

/// Where a typed text's end lies in a sequence.
struct TypedPlace {
  const engine::Engine& engine;
  engine::SequenceId sequence;
  int behind = 0;  ///< tokens that the sequence holds after it
};

/// Compares `draft`, the tokens at that place, with the sampler's choices. nullopt if all of them
/// stand, or if the logits before one are not at hand. `spelling` is then at the mismatch, or done.
std::optional<Mismatch> find_mismatch(const TypedPlace& place,
                                      std::span<const engine::TokenId> draft,
                                      engine::Sampler& sampler, Spelling& spelling);

}  // namespace efimd::completion
