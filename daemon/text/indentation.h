#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace efimd::text {

/// Lines that are read, nearest first, because habits near the cursor win over distant ones.
inline constexpr std::size_t kIndentationLinesMax = 512;
/// Bytes that are read on each side; a minified line of megabytes says nothing.
inline constexpr std::size_t kIndentationBytesMax = 64 * 1024;

/// How a text indents: one tab, or `spaces` spaces, per level.
struct Indentation {
  bool tabs = false;
  int spaces = 4;
  /// False: no indented line was found, and the caller's own default should win.
  bool known = false;
  /// A quarter of the lines or more are indented the other way, as where a tab stands for 8 spaces.
  bool mixed = false;

  /// The characters of one level.
  std::string unit() const {
    return tabs ? "\t" : std::string(static_cast<std::size_t>(spaces), ' ');
  }
  bool operator==(const Indentation&) const = default;
};

/// The indentation of the lines around ` near` use: tabs if most indented lines start with one,
/// else the most common step between neighbouring lines (1 to 8 spaces). Lines that begin with "*"
/// are a comment's and say nothing.
Indentation indentation_of(std::string_view text, std::size_t near);

/// The leading blanks (spaces and tabs) of `line`.
std::string_view leading_blanks(std::string_view line);

}  // namespace efimd::text
