#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/recall/match.h"

namespace efimd::recall {

/// Lines that a candidate may have under its own.
inline constexpr std::size_t kNextLinesMax = 16;

/// The lines that stand under `line` where matches end their lines with it too, as far as most of
/// them agree. They have the indentation that they would have under the cursor's line. None if text
/// follows the cursor on its line. They end before a line that stands under the cursor already.
///
/// Cost: some microseconds. `heard` has the weightiest matches first.
std::vector<NextLine> next_lines(const Asked& asked, std::string_view line,
                                 std::span<const Match> heard);

}  // namespace efimd::recall
