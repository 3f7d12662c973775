#pragma once

#include <vector>

#include "daemon/recall/candidate.h"
#include "daemon/recall/match.h"

namespace efimd::recall {

/// The candidates that judged matches vote for, the most worth showing first, at most `most`. Left
/// out: what the next line says already, and what the rest of the cursor's line repeats.
std::vector<Candidate> candidates_of(const Asked& asked, const std::vector<Match>& matches,
                                     std::size_t most);

}  // namespace efimd::recall
