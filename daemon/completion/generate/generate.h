#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/completion/fit/unit_ends.h"
#include "daemon/completion/request.h"
#include "daemon/prompt/anchor.h"
#include "engine/decode/spelling.h"
#include "engine/engine.h"

namespace efimd::completion {

/// What ended a generation.
enum class End { kModel, kRule, kTokens, kTime, kNoRoom, kUnsure, kStopped };

struct Generated {
  std::string text;  ///< behind the cursor, what the stop rule kept; may end inside a code point
  std::string all_text;     ///< behind the cursor, all of it
  bool blank_line = false;  ///< nothing was kept, for the model went on below the cursor's line
  /// All that were chosen, also behind what was kept. Behind the prompt's tokens but the last
  /// `healed`, which the first of these spell again.
  std::vector<prompt::CoveredToken> tokens;
  int healed = 0;
  int new_tokens = 0;                ///< of `tokens`, those that go on behind the cursor
  std::vector<TokenChance> chances;  ///< of these, in order
  double confidence = 1;             ///< the product of their probabilities
  End end = End::kModel;
  std::optional<std::chrono::steady_clock::time_point> first_token;
};

/// The prompt's end that may be healed (healing.h).
struct TypedEnd {
  const engine::ByteOrder& order;
  int tokens = 0;  ///< at the end of what the sequence holds; the logits in front of each are ready
  /// What must stand in their place; empty: what they spell. Text that is no more than that is none.
  std::string spells = {};
};

/// What a generation runs on besides its options.
struct GenerationSetting {
  engine::Engine& engine;
  engine::SequenceId sequence{};                 ///< holds the prompt, its logits ready
  std::stop_token stop;                          ///< looked at before each token
  std::optional<TypedEnd> typed = std::nullopt;  ///< unset: the prompt stands as it is
  /// What a generation had when it was stopped: it goes on from there. The sequence then holds its
  /// tokens, too.
  std::optional<Generated> begun = std::nullopt;
  /// Tokens of another sequence to evaluate along with the next one, where that is free;
  /// empty when there are none.
  std::function<engine::BatchItem()> passenger = nullptr;
  /// Frees KV memory for one more token; false when there is none to free.
  std::function<bool()> make_room = [] { return false; };
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Chooses tokens and evaluates each but the last, until the model, the stop rule, a budget, the
/// stop token or the model's doubt ends it: below least_confidence(), nothing that comes could be
/// shown. What is there when a budget ends is kept. Budgets count what goes on behind the cursor; a
/// healed end is spelled within kSpellingTokensMax tokens, or stands as it was.
///
/// Thread: engine. Fails as Engine::append() does, but for a full KV memory, which is an end.
Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules);

/// `count` generations at most, from one prompt in shared steps: the likeliest as generate() makes
/// it, then those that begin with the next likeliest first tokens, on forks of the sequence and with
/// copies of `rules`. The first is always there.
Result<std::vector<Generated>> generate_several(const GenerationSetting& setting,
                                                const Options& options, StopRules& rules,
                                                int count);

}  // namespace efimd::completion
