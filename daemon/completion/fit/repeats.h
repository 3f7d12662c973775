#pragma once

#include <string_view>

#include "daemon/completion/fit/language.h"

namespace efimd::completion {

/// Of two jump statements: words and signs in common, in order, as a share of the longer's.
inline constexpr double kJumpShareMin = 0.6;

/// Whether the line `a` repeats the line `b`. Either
///
///   - they are equal except for blanks, the kind of quotes, a comment after them, "," and ";" at
///     their ends, and words that only declare a name (const, let, var, auto, ...); or
///   - both leave their block with the same word (return, raise, break, ...) and at least
///     kJumpShareMin of one is in the other, because only the first would ever run.
///
/// Nothing softer counts, because entries of a table, cases, imports and assignments differ by one
/// name, number or sign. Completions exist to write the next of them. The caller handles
/// indentation.
bool nearly_equal(std::string_view a, std::string_view b, const Language& language);

/// The first of these alone.
bool same_but_for_form(std::string_view a, std::string_view b, const Language& language);

}  // namespace efimd::completion
