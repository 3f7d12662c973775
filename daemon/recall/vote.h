#pragma once

#include <vector>

#include "daemon/recall/candidate.h"
#include "daemon/recall/match.h"

namespace efimd::recall {

/// The candidates that judged matches vote for, the most worth showing first, at most `most`. Left
/// out: what the line below or above says already, and what the rest of the cursor's line repeats.
std::vector<Candidate> candidates_of(const Asked& asked, std::vector<Match> heard,
                                     std::size_t most);

/// What orders candidates: the bytes that the user may expect to be spared. A line that is right to
/// its end counts most, because it takes one key and no look at the rest.
double worth_of(const Candidate& candidate);

/// The weightiest match of the line that most weight speaks for, that weight's share of all, and how
/// many matches it is of.
struct Supported {
  const Match* match = nullptr;  ///< null: there is no match
  double share = 0;
  std::size_t votes = 0;
};
Supported best_supported(const std::vector<Match>& matches);

}  // namespace efimd::recall
