#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/generate/generate.h"
#include "daemon/completion/request.h"
#include "daemon/text/document.h"
#include "engine/engine.h"

// What was generated, for as long as it may answer again. The rule in full: docs/efim.md.
//
//   a suggestion becomes a draft once a fuller anchor is whole; its tokens stay as far as the
//         model itself would have chosen them.

namespace efimd::completion {

/// A completion as it was generated, and the text that it goes on with: what is typed after it is
/// answered from it as long as the text agrees.
struct Suggestion {
  text::SnapshotPtr snapshot;   ///< the version that it was generated for
  std::size_t begin = 0;        ///< of that version: where new text is expected
  std::size_t replace_end = 0;  ///< of that version: new text stands in the place of [begin, this)
  /// Text expected at `begin` in front of the completion's: what was shown, for a completion that
  /// idle time prepared as if that had been accepted.
  std::string lead;
  Options options;
  Generated generated;
  std::vector<engine::TokenId> prompt;  ///< the tokens that it was generated behind
  std::optional<engine::SequenceId> sequence;
  int poverty = 0;  ///< of the view that it was made with (prompt::poverty)
};

/// How many bytes of the completion stand in `snapshot` in front of `cursor`: 0 where it was made,
/// more behind what was typed of it. nullopt when the text has anything else than the lead and a
/// beginning of the completion at the place, anything but closers behind it, or was edited
/// elsewhere.
std::optional<std::size_t> typed_of(const Suggestion& suggestion, const text::Snapshot& snapshot,
                                    std::size_t cursor);

/// Whether the model had said all that it had to say, or so much that the rest behind `typed` bytes
/// is worth showing without asking it again.
bool can_answer(const Suggestion& suggestion, std::size_t typed);

/// The part behind `typed` bytes, with its tokens' chances.
Generated rest_of(const Generated& generated, std::size_t typed);

}  // namespace efimd::completion
