#pragma once

#include <cstddef>

#include "daemon/completion/answer/turn.h"
#include "daemon/completion/generate/generate.h"

namespace efimd::completion {

/// Tells the request what its answer begins with, while the model is writing it: as much as no later
/// token, fit() or recall can take back. What is held until the answer:
///
///   - text after the last end of a unit, because the model may turn out not to be sure of it;
///   - a line that is not whole, unless it is the rest of the cursor's; and a line that stands below
///     the cursor already, with all after it;
///   - all, if text follows the cursor on its line, if a suggestion was rejected at this place, if
///     the line was finished before, or as long as recall's text differs and may be shown instead.
///
/// `typed`: bytes of the generation that stand before the cursor by now. Null if nobody listens, or
/// if the turn has no rival. The turn outlives it.
TokenHeard partial_teller(Turn& turn, std::size_t typed = 0);

}  // namespace efimd::completion
