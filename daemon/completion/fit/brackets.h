#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/fit/language.h"

namespace efimd::completion {

struct Bracket {
  std::size_t at = 0;
  char c = 0;
};

/// A scan reports these in addition to ( ) [ ] { }.
enum class Also {
  kNothing,
  kAngles,      ///< < >, except in "->", "=>", "<=" and ">="; for places where one is open
  kSeparators,  ///< "," ";" and "\n"
};

/// The state of a scan: in code, or in a string or comment that `until` ends.
struct Lexical {
  enum class In { kCode, kString, kComment };
  In in = In::kCode;
  std::string until;         ///< "\n": the line's end
  bool escapes = false;      ///< a backslash takes the next byte with it
  bool spans_lines = false;  ///< a line's end does not end it
  std::size_t begin = 0;     ///< of the scanned text, where it began there
  char previous = '\n';      ///< the byte before the text
  int parens = 0;            ///< "(" that are open, if the language is a shell
};

struct Scan {
  std::vector<Bracket> brackets;      ///< and what else was asked for, in code, in order
  std::vector<std::size_t> unclosed;  ///< where strings began that their line did not close
  std::vector<std::size_t> closed;    ///< the ends of strings that were closed
  Lexical end;
};

/// Reads `text`, which begins in the state `begin`. A string that its line should have closed ends
/// with the line.
Scan scan(std::string_view text, const Language& language, Lexical begin = {},
          Also also = Also::kNothing);

bool is_opener(char c);
bool is_closer(char c);  ///< a bracket, not a quote
char closer_of(char opener);

/// Brackets that are open after `line`, given those open before it; below 0 if the line closes
/// more. Moves `state` past the line and its end. Does not count closers in the line's first
/// `forgiving` bytes that have no opener there, nor those of prose.
int depth_after(int depth, std::string_view line, const Language& language, Lexical& state,
                std::size_t forgiving = 0);

}  // namespace efimd::completion
