#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/completion/fit/unit_ends.h"
#include "daemon/completion/request.h"
#include "daemon/prompt/anchor.h"
#include "engine/decode/spelling.h"
#include "engine/engine.h"

namespace efimd::completion {

/// The reason for a generation's end.
enum class End { kModel, kRule, kTokens, kTime, kNoRoom, kUnsure, kStopped };

/// What a generation cost the engine, and what drafts spared it.
struct GenerationWork {
  int steps = 0;     ///< of the engine, after the prompt's own
  int drafted = 0;   ///< tokens that were evaluated before the model had chosen them
  int accepted = 0;  ///< of these, those that it chose then
};

/// A token of a candidate, as the model judged it.
struct JudgedToken {
  std::size_t end = 0;     ///< bytes of the candidate up to its end
  double probability = 0;  ///< after the tokens before it
};

struct Generated {
  std::string text;      ///< after the cursor, what the stop rule kept; may end inside a code point
  std::string all_text;  ///< after the cursor, all of it
  bool blank_line = false;  ///< nothing was kept, because the model went on below the cursor's line
  /// All chosen tokens, also those after what was kept. The first of them spell the last `healed`
  /// tokens of the prompt again, and replace them.
  std::vector<prompt::CoveredToken> tokens;
  int healed = 0;
  int new_tokens = 0;                ///< of `tokens`, those that go on after the cursor
  std::vector<TokenChance> chances;  ///< of these, in order
  double confidence = 1;             ///< the product of their probabilities
  End end = End::kModel;
  std::optional<std::chrono::steady_clock::time_point> first_token;
  GenerationWork work = {};  ///< without that of what it went on from
  /// The model's word on each of GenerationSetting::candidates (judging.h).
  std::vector<std::vector<JudgedToken>> judged = {};
};

/// Proposes what the model may write next. The tokens are evaluated in the step of the token before
/// them, and stay as far as the model chooses the same: they never change what is written.
///
/// Thread: engine.
class DraftSource {
 public:
  virtual ~DraftSource() = default;
  /// Tokens that may follow `written`, the text after the cursor so far; at most `most`, or none.
  virtual std::vector<engine::TokenId> propose(std::string_view written, std::size_t most) = 0;
  /// The result of a step with this many drafted tokens, none included; `ms`: what it took, with the
  /// choice of its tokens.
  virtual void stepped(int drafted, int accepted, double ms) = 0;
};

/// Hears of each token that does not end the generation: the text so far, and all but the text of the
/// result so far.
using TokenHeard = std::function<void(const StopRules& rules, const Generated& so_far)>;

/// The prompt's end that may be healed (healing.h).
struct TypedEnd {
  const engine::ByteOrder& order;
  int tokens = 0;  ///< at the end of what the sequence holds; the logits before each are ready
  /// The text that must replace them; empty: their own. A result of only that text is empty.
  std::string spells = {};
};

/// The surroundings of a generation, besides its options.
struct GenerationSetting {
  engine::Engine& engine;
  engine::SequenceId sequence{};                 ///< holds the prompt, its logits ready
  std::stop_token stop;                          ///< looked at before each token
  std::optional<TypedEnd> typed = std::nullopt;  ///< unset: the prompt stands as it is
  /// The state of a stopped generation, which goes on from there. The sequence then holds its
  /// tokens, too.
  std::optional<Generated> begun = std::nullopt;
  /// Tokens at the end of what the sequence holds that are a draft: the prompt ends before them, and
  /// the logits before each are ready.
  int drafted = 0;
  /// Texts that may follow the cursor, for the model to judge.
  std::span<const std::string> candidates = {};
  /// Further drafts; null: none. Only for greedy choices, because a sample depends on how many tokens
  /// were drawn before it.
  DraftSource* drafts = nullptr;
  /// Tokens of another sequence to evaluate in the next token's step, if that is free; empty
  /// if there are none.
  std::function<engine::BatchItem()> piggyback = nullptr;
  TokenHeard heard = nullptr;  ///< null: nobody listens; not for several generations
  /// Frees KV memory for one more token; false if there is none to free.
  std::function<bool()> make_room = [] { return false; };
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Chooses tokens and evaluates each but the last. The model, the stop rule, a budget, the stop
/// token or low confidence ends it: below least_confidence(), no further token could be shown. Text
/// that is there when a budget ends is kept. Budgets count tokens after the cursor. A healed end is
/// spelled within kSpellingTokensMax tokens, or stays as it was.
///
/// Thread: engine. Fails as Engine::append() does, except that full KV memory only ends it.
Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules);

/// Up to `count` candidates from one prompt, in shared steps. The first is generate()'s and is
/// always there. The others begin with the next likeliest first tokens, on forks of the sequence
/// and with copies of `rules`.
Result<std::vector<Generated>> generate_several(const GenerationSetting& setting,
                                                const Options& options, StopRules& rules,
                                                int count);

}  // namespace efimd::completion
