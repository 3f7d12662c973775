#pragma once

#include <array>
#include <string_view>

namespace efimd::completion {

/// What must be known of a language to tell brackets from comments and strings; nothing else of its
/// grammar is.
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
  /// A quote opens a string only where its line has another: languages nobody described.
  bool quotes_are_guessed = false;
  bool prose = false;  ///< brackets need no partner: "1) one"
};

/// The description that LSP's languageId names, else the one of the URI's ending, else a guess that
/// knows quotes but no comments. The descriptions live as long as the program.
const Language& language_of(std::string_view language_id, std::string_view uri = {});

}  // namespace efimd::completion
