#pragma once

#include <memory>
#include <stop_token>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/completion.h"
#include "daemon/completion/status_board.h"

namespace efimd::completion {

/// What a worker shares with the service, which outlives it.
struct Shared {
  StatusBoard& board;
  recall::Index& index;
  Taste& taste;
};

/// Loads the model, measures it if no window is fixed, and says on the board how that goes. Null if it
/// failed: then the board has the reason.
///
/// Thread: engine.
std::unique_ptr<Worker> load_worker(const EngineFactory& factory,
                                    const CompletionService::Settings& settings,
                                    const Shared& shared, const std::stop_token& stop);

/// Measures again what steps cost if another device has taken over, which may be a hundred times as
/// slow. If `stop` fires meanwhile, the next call does it.
///
/// Thread: engine.
void follow_device(Worker& worker, const CompletionService::Settings& settings,
                   const std::stop_token& stop = {});

}  // namespace efimd::completion
