#pragma once

#include <string_view>

namespace efimd::service {

/// Longer patterns match nothing; longer paths are not matched.
inline constexpr std::size_t kGlobBytesMax = 4096;

/// Whether `pattern` matches all of `text`, as in .gitignore. `*` and `?` stay within a path's part;
/// `**/`, `/**/` and `/**` go over parts. `[a-z]`, `[!a-z]` and `[[:alpha:]]` are classes, and `\` before
/// a character takes it literally. Takes at most as many steps as the product of both lengths.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace efimd::service
