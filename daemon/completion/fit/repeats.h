#pragma once

#include <string_view>

#include "daemon/completion/fit/language.h"

namespace efimd::completion {

/// Of two jump statements: words and signs in common, in order, as a share of the longer's.
inline constexpr double kJumpShareMin = 0.6;

/// Whether `a` says again what the line `b` says. Either
///
///   - they are equal but for blanks, the kind of quotes, a comment behind them, "," and ";" at
///     their ends, and words that only say how a name is declared (const, let, var, auto, ...); or
///   - both leave their block with the same word (return, raise, break, ...) and at least
///     kJumpShareMin of one is in the other: only the first would ever run.
///
/// Nothing softer: a table's entries, cases, imports and assignments differ by one name, number or
/// sign, and the next of them is what a completion is for. Indentation is the caller's matter.
bool nearly_equal(std::string_view a, std::string_view b, const Language& language);

/// The first of these alone.
bool same_but_for_form(std::string_view a, std::string_view b, const Language& language);

}  // namespace efimd::completion
