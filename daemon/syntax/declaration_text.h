#pragma once

#include <string>
#include <string_view>

#include "daemon/syntax/tree.h"

namespace efimd::syntax {

/// The lines of a declaration without bodies, comments and long values, and without a line end. What is
/// over kDeclarationBytesMax is left out.
std::string declaration_text(Grammar grammar, const Tree& tree, TSNode node);

/// Whether a node of that type is a function, whose field "body" is what it does, and not what it is.
bool is_function(std::string_view type);

}  // namespace efimd::syntax
