#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/fit/brackets.h"
#include "daemon/completion/fit/language.h"
#include "daemon/syntax/continuation.h"
#include "daemon/syntax/grammar.h"
#include "daemon/text/document.h"

namespace efimd::completion {

/// Bytes before the cursor's line that are scanned for open brackets. Scanning more costs more than
/// it tells. A scan that begins inside the file assumes that it begins in code.
inline constexpr std::size_t kSurroundingsBytesMax = 64 * 1024;

/// Bytes of the cursor's line that are looked at on either side: more is a file without lines.
inline constexpr std::size_t kLineBytesMax = 16 * 1024;

/// A bracket that is open before the cursor's line.
struct OpenBracket {
  char c = 0;
  std::string_view indentation;  ///< of the line that it stands on
};

/// Takes out what `closer` closes, with what stands open behind it. A stray closer closes nothing: ")"
/// and "]" look no further than the last "{", and none looks at more than 64 brackets.
std::optional<OpenBracket> close_last(std::vector<OpenBracket>& open, char closer);

/// The place of a completion, and what the text around says of it.
///
/// Borrows the snapshot.
struct CursorContext {
  const text::Snapshot& snapshot;
  const Language& language;
  std::size_t cursor = 0;
  syntax::Grammar grammar = syntax::Grammar::kNone;  ///< of the text; kNone: F-8 changes nothing
  std::uint64_t parse_time_us = syntax::kContinuationTimeUs;  ///< for each parse, of a processor
  std::size_t tail_end = 0;         ///< of the closers and blanks after the cursor, on its line
  std::string line_before = {};     ///< the cursor's line up to the cursor, kLineBytesMax at most
  std::string_view rest = {};       ///< the cursor's line from the cursor on
  bool rest_is_tail = true;         ///< it is blank, or closers and blanks only
  std::string_view next_line = {};  ///< the next line that is not blank
  bool line_is_short = true;        ///< it has no more than kLineBytesMax on either side
  Lexical state = {};               ///< in which `line_before` begins
  std::vector<OpenBracket> open = {};  ///< before the cursor's line, outermost first
  bool open_is_all = true;             ///< the text was read from its begin on
};

/// `tail_end` is the plan's; what lies on the cursor's line counts.
CursorContext context_at(const text::Snapshot& snapshot, const Language& language,
                         std::size_t cursor, std::size_t tail_end);

/// The lines before the cursor's that a grammar reads (syntax/continuation.h): all, or the last ones.
/// Empty without a grammar, and beside a line that is not short.
std::string_view window_above(const CursorContext& place);

}  // namespace efimd::completion
