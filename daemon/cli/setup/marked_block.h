#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace efimd::service {

// efimd's own lines in a configuration file of the user's, between two comments that mark them. The
// first comment has the sum of the lines, so that lines which the user changed are never taken away.
// It also says what else was made for them, so that taking them away leaves every other byte as it
// was.

/// The language of a file, which decides how comments and lines are written. kLisp, kLua, kToml and
/// kVim get the block at the end, kJson gets it as the first member of the outermost object.
enum class Syntax { kJson, kLisp, kLua, kToml, kVim };

/// What was made for the block.
struct MadeFor {
  bool file = false;
  int folders = 0;
  bool operator==(const MadeFor&) const = default;
};

/// `text` with `lines` in it, which end with a line end (kJson: one member, without a comma). The
/// text's own kind of line ends is used. kBadInput, with what stands in the way, if the text cannot
/// be read in its language.
Result<std::string> with_block(std::string_view text, Syntax syntax, std::string_view lines,
                               MadeFor made = {});

struct MarkedBlock {
  std::string lines;  ///< with plain line ends
  std::string rest;   ///< the text as it was before with_block()
  MadeFor made;
};
/// nullopt: the text has none. kBadInput if its marks are damaged, or its lines not those that
/// with_block() wrote.
Result<std::optional<MarkedBlock>> find_block(std::string_view text, Syntax syntax);

/// Whether a Lisp text ends outside of every list and string.
bool lisp_is_whole(std::string_view text);

}  // namespace efimd::service
