#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/completion/completion.h"
#include "daemon/completion/stop_rules.h"
#include "daemon/prompt/planner.h"
#include "engine/engine.h"

namespace efimd::completion {

/// What ended a generation.
enum class End { kModel, kRule, kTokens, kTime, kNoRoom, kStopped };

struct Generated {
  std::string text;         ///< what the stop rule kept; may end inside a code point
  bool blank_line = false;  ///< nothing was kept, for the model went on below the cursor's line
  std::vector<prompt::CoveredToken> tokens;  ///< all that were chosen, also behind what was kept
  End end = End::kModel;
  std::optional<std::chrono::steady_clock::time_point> first_token;
};

/// What a generation runs on besides its options.
struct GenerationSetting {
  engine::Engine& engine;
  engine::SequenceId sequence{};  ///< holds the prompt, its logits ready
  std::stop_token stop;           ///< looked at before each token
  /// Frees KV memory for one more token; false when there is none to free.
  std::function<bool()> make_room = [] { return false; };
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// Chooses tokens and evaluates each but the last, until the model, the stop rule, a budget or the
/// stop token ends it. What is there when a budget ends is kept.
///
/// Thread: engine. Fails as Engine::append() does, but for a full KV memory, which is an end.
Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules);

}  // namespace efimd::completion
