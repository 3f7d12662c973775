#pragma once

#include <span>
#include <stop_token>

#include "engine/backend/backend.h"

namespace efimd::engine {

/// Evaluates one step through every layer. Returns the logits of step.logits_rows, [rows][V], valid
/// until the backend's next begin(); empty when none are wanted.
///
/// Thread: engine.  `stop` is looked at between layers. Only idle work has one: for a request a stop
/// is looked at between steps, so that no evaluated row is thrown away and even a prompt whose every
/// request is superseded comes forward by a step each time. Fails as the Backend does, and with
/// kStopped; the step is then void and the KV of its rows undefined.
Result<std::span<const float>> forward(Backend& backend, int layers, const Step& step,
                                       const std::stop_token& stop = {});

}  // namespace efimd::engine
