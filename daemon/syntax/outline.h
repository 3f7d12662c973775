#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/syntax/grammar.h"

namespace efimd::syntax {

/// What a file declares for others: a signature or a type, without bodies, comments and long values.
struct Declaration {
  std::vector<std::string> names;  ///< the first is its own; others are of what is in it
  std::string text;                ///< lines without one at the end
  bool operator==(const Declaration&) const = default;
};

/// Of one file, and of one declaration; more is left out.
inline constexpr std::size_t kOutlineBytesMax = std::size_t{64} << 10;
inline constexpr std::size_t kDeclarationBytesMax = std::size_t{4} << 10;

/// The declarations of a file in their order, out of namespaces and modules; empty without a grammar.
/// Not those that only the file itself sees: unnamed namespaces, tests, Python's and Rust's blocks.
std::vector<Declaration> outline_of(Grammar grammar, std::string_view text);

}  // namespace efimd::syntax
