#pragma once

#include <array>
#include <string_view>

namespace efimd::completion {

/// The facts that tell brackets from comments and strings in a language. Nothing else of its
/// grammar is known.
struct Language {
  enum class Raw { kNone, kCpp, kRust };

  std::string_view name = {};
  std::array<std::string_view, 2> line_comments = {};
  std::string_view comment_open = {}, comment_close = {};  ///< of block comments
  std::string_view quotes = {};                            ///< of strings that end on their line
  bool char_literals = false;  ///< 'x' is one character; a lone ' (lifetime, digit separator) opens
                               ///< nothing
  std::array<std::string_view, 2> long_quotes = {};  ///< of strings that span lines
  Raw raw = Raw::kNone;                              ///< R"x(...)x" or r#"..."#
  /// /x/ is a regular expression, and "'" behind a name is none that opens a string: "don't" of JSX.
  bool javascript = false;
  /// As a shell has it: only where a word may begin does a mark open a comment ("$#" has none), and a
  /// ")" without a "(" ends a pattern of case.
  bool shell = false;
  /// A quote opens a string only if its line has another: for languages without a description.
  bool quotes_are_guessed = false;
  bool prose = false;  ///< brackets need no partner: "1) one"
};

/// The description for LSP's languageId, else for the URI's ending, else a guess that knows quotes
/// but no comments. Descriptions live as long as the program.
const Language& language_of(std::string_view language_id, std::string_view uri = {});

}  // namespace efimd::completion
