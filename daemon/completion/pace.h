#pragma once

#include <optional>
#include <stop_token>
#include <string_view>

#include "base/error.h"
#include "daemon/completion/budgets.h"
#include "daemon/completion/pace_keeper.h"
#include "daemon/prompt/choose.h"
#include "engine/engine.h"

namespace efimd::completion {

/// The cost of steps of 1, 4, 16, 64 and 256 tokens on this engine. Measuring stays
/// within about a second: on a slow device, a straight line through the others gives the larger
/// ones. Closes its sequences.
Result<prompt::StepCosts> measure_step_costs(engine::Engine& engine, std::stop_token stop);

/// Prompt tokens per second by that table.
double prompt_tokens_per_s(const prompt::StepCosts& costs);

/// The sizes of prompts on a device of that speed. The first window's is the most of 512, 2,048 and
/// 8,192 tokens that it evaluates within two seconds. That of a first prompt that must be answered at
/// once is the most of 96, 192, 384 and 768 within kFirstAnswerMs. Fewer than 96 do not show
/// the lines around the cursor. A larger size in `kept` stays if twice the speed would lead to it; 0:
/// none was kept.
Pace pace_for(const prompt::StepCosts& costs, const Pace& kept = {});

/// What `window.tokens` is by default on a device of that kind (Engine::device_kind()).
int window_tokens_by_default(std::string_view device_kind);

/// What a sequence must hold for a window of `text_tokens`: an increment and generated tokens, too.
int engine_window_for(int text_tokens);

/// The budgets that `costs` and the engine allow. `window_tokens`: what the user wants; unset: the
/// default, as far as the engine has ample room (Engine::ample_tokens()). `keeper`: remembers the
/// sizes until the next start; may be null.
void set_pace(Budgets& budgets, const engine::Engine& engine, std::optional<int> window_tokens,
              const PaceKeeper* keeper = nullptr);
/// The most tokens of text in the window of a prompt that has `room_tokens` for text and increment.
int wide_tokens_within(int room_tokens);

}  // namespace efimd::completion
