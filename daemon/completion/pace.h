#pragma once

#include <stop_token>

#include "base/error.h"
#include "daemon/completion/budgets.h"
#include "daemon/prompt/choose.h"
#include "engine/engine.h"

namespace efimd::completion {

/// What steps of 1, 4, 16, 64 and 256 tokens cost on this engine, as far as the measuring stays
/// within about a second: on a slow device the larger ones are left to the straight line
/// through the others. Leaves no sequence behind.
Result<prompt::StepCosts> measure_step_costs(engine::Engine& engine, std::stop_token stop);

/// Prompt tokens per second by that table.
double prompt_tokens_per_s(const prompt::StepCosts& costs);

/// Most tokens of a prompt, so that a cold one takes at most `cold_prompt_ms`: a multiple of 64, at
/// least 256, at most the engine's window.
int prompt_tokens_for(const prompt::StepCosts& costs, int cold_prompt_ms, int window_tokens);

/// Tokens of a first prompt that is to be answered at once: what kFirstAnswerMs allow, but no
/// fewer than show the lines around the cursor.
int near_tokens_for(const prompt::StepCosts& costs);

/// The budgets that `costs` and `cold_prompt_ms` allow.
void set_pace(Budgets& budgets, int window_tokens);
/// The same again once idle time has learned that the device is faster by a quarter: a window that
/// moved for less would cost more than it shows. Fixed budgets stay.
void widen(Budgets& budgets, int window_tokens);

}  // namespace efimd::completion
