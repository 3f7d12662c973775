#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/match.h"

namespace efimd::recall {

/// Finds lines near the cursor in its own document that are built as its line, or that follow lines
/// built as those above it. The user's names come in place of theirs: after `self.width = width`,
/// `self.height = ` goes on with `height`.
///
/// Cost: some 20 us. Owns the text of the matches that it makes.
class Analogies {
 public:
  /// Judged matches, the weightiest first; none at the end of a finished line.
  std::vector<Match> find(const Asked& asked, std::string_view path);

 private:
  std::deque<std::string> texts_;
};

}  // namespace efimd::recall
