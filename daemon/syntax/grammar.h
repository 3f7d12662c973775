#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace efimd::syntax {

// What tree-sitter says of a text. Everything here is a function of the text alone.
//
// Limits: of a text, its first kTextBytesMax are read; kParseTimeUs, past which it is one without a
// grammar; kDepthMax. A build without grammars (cmake/grammars.cmake) finds none.
// Thread: any; each call parses with a parser of its own.

/// The languages that are read.
enum class Grammar : std::uint8_t {
  kNone,
  kC,
  kCpp,
  kPython,
  kGo,
  kRust,
  kTypescript,
  kTsx,  ///< also JavaScript, which is a part of it but for a few odd casts
  kJava,
};

/// The grammar of a file or URI by its ending; kNone if there is none, or this build lacks it.
Grammar grammar_of(std::string_view path);

/// tree-sitter 0.20.7 counts a node's children in 16 bits and frees the wrong memory past that. A text
/// of this size has fewer tokens, also with those of no bytes (Python's indents, JavaScript's line ends).
inline constexpr std::size_t kTextBytesMax = std::size_t{48} << 10;
/// What is read of a text: of a longer one the whole lines of its first kTextBytesMax.
inline std::string_view part_read(std::string_view text) {
  if (text.size() <= kTextBytesMax) return text;
  return text.substr(0, text.substr(0, kTextBytesMax).rfind('\n') + 1);
}
/// Microseconds of a processor that one parse may take. So much code takes 5,000 to 15,000.
inline constexpr std::uint64_t kParseTimeUs = 100'000;
/// Levels of a tree that are looked at.
inline constexpr int kDepthMax = 48;

}  // namespace efimd::syntax
