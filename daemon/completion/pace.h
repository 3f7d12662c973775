#pragma once

#include <stop_token>

#include "base/error.h"
#include "engine/engine.h"

namespace efimd::completion {

/// Prompt tokens per second that this engine evaluates, measured once by evaluating at most 72
/// . The first few warm it up: they touch the weights, and where they are slow they are the
/// measurement. Leaves no sequence behind.
Result<double> measure_prompt_speed(engine::Engine& engine, std::stop_token stop);

/// Most tokens of a prompt, so that a cold one takes at most `cold_prompt_ms`: a multiple of 64, at
/// least 256, at most the engine's window.
int prompt_tokens_for(double tokens_per_s, int cold_prompt_ms, int window_tokens);

}  // namespace efimd::completion
