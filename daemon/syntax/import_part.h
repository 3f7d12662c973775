#pragma once

#include <string>
#include <string_view>

#include "daemon/syntax/grammar.h"

namespace efimd::syntax {

/// The text up to its last import, found by the words that imports are made with, and what closes the
/// conditions, or Rust's modules, around it. Imports stand first in most files, and to parse what follows takes 5 to 50 ms.
std::string import_part(Grammar grammar, std::string_view text);

}  // namespace efimd::syntax
