#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace efimd::service {

// Finds files that hold keys and passwords, by name and by content.

/// The pattern that matches this path, absolute or a name after "/", or what it is a copy of
/// ("token~", ".netrc.bak"); empty if none does. A pattern is for the file's name, in any case. Folders count only if they hold nothing but secrets, as
/// .ssh does, because a folder x.key or credentials-service may hold code.
std::string secret_by_name(std::string_view path);

/// Why `text` is a secret; empty if it is none. It is one with a private key and its header, on lines
/// of their own or in a string. So is nothing but one token with a prefix that services give. Looks
/// at kScannedBytesMax.
std::string secret_by_content(std::string_view text);
inline constexpr std::size_t kScannedBytesMax = std::size_t{1} << 20;

/// All patterns, for people to read.
std::span<const std::string_view> secret_patterns();

}  // namespace efimd::service
