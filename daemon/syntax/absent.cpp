// The room in a build without grammars.
#include "daemon/syntax/continuation.h"
#include "daemon/syntax/imports.h"
#include "daemon/syntax/outline.h"

namespace efimd::syntax {

Grammar grammar_of(std::string_view) { return Grammar::kNone; }
std::vector<Import> imports_of(Grammar, std::string_view) { return {}; }
std::vector<Declaration> outline_of(Grammar, std::string_view) { return {}; }
std::string_view window_before(std::string_view before) { return before; }
std::optional<std::size_t> accepted_bytes(Grammar, std::string_view, std::string_view,
                                          std::uint64_t) {
  return std::nullopt;
}
std::optional<std::size_t> block_begin(Grammar, std::string_view, std::string_view, std::uint64_t) {
  return std::nullopt;
}

}  // namespace efimd::syntax
