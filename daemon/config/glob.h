#pragma once

#include <string_view>

namespace efimd::service {

/// Longer patterns match nothing; longer paths are not matched.
inline constexpr std::size_t kGlobBytesMax = 4096;

/// Whether `pattern` matches all of `text`, as in .gitignore: `*` and `?` within a path's part,
/// `[a-z]`, `[!a-z]`, `\` before a character taken literally, `**/`, `/**/` and `/**` over parts.
/// Takes at most as many steps as the product of both lengths.
bool glob_match(std::string_view pattern, std::string_view text);

}  // namespace efimd::service
