#pragma once

#include "base/error.h"
#include "engine/backend/backend.h"

namespace efimd::engine {

/// What every device asks of a step before it begins.

/// Whether rows, sequences and page tables fit each other and the device; for assertions.
bool well_formed(const Step& step, const Backend& backend);

/// kBadInput when a token is outside the vocabulary.
Result<void> check_tokens(const Step& step, int vocabulary);

}  // namespace efimd::engine
