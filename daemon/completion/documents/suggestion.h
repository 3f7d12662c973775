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

// Generated text, for as long as it may answer again. The rule in full: docs/efim.md.
//
//   a suggestion becomes a draft after a fuller anchor is whole. Its tokens stay as far as
//         the model itself would have chosen them.

namespace efimd::completion {

/// A completion as it was generated, and the text that it continues. It answers what is typed next
/// as long as the text agrees with it.
struct Suggestion {
  text::SnapshotPtr snapshot;   ///< the version that it was generated for
  std::size_t begin = 0;        ///< of that version: the place of new text
  std::size_t replace_end = 0;  ///< of that version: new text stands in the place of [begin, this)
  /// Text expected at `begin` before the completion's own. It is the shown suggestion, if idle time
  /// prepared this completion as if that had been accepted.
  std::string lead;
  Options options;
  Generated generated;
  std::vector<engine::TokenId> prompt;  ///< the tokens that it was generated after
  std::optional<engine::SequenceId> sequence;
  int view_rank = 0;  ///< of the view that it was made with (prompt::view_rank)
};

/// How many bytes of the completion stand in `snapshot` before `cursor`: 0 at first, more after a
/// part of it was typed. nullopt if the text at the place is not the lead and a beginning of the
/// completion. Also if anything but closers follows, or if the text was edited elsewhere.
std::optional<std::size_t> typed_of(const Suggestion& suggestion, const text::Snapshot& snapshot,
                                    std::size_t cursor);

/// Whether the rest after `typed` bytes is worth showing without asking the model again: it ended
/// by itself, or enough is left.
bool can_answer(const Suggestion& suggestion, std::size_t typed);

/// The part after `typed` bytes, with the probabilities of its tokens.
Generated rest_of(const Generated& generated, std::size_t typed);

struct DocumentState;

/// A remembered suggestion that the text continues, and how many of its bytes are typed.
struct KnownSuggestion {
  const Suggestion* suggestion = nullptr;  ///< null: there is none
  std::size_t typed = 0;
};
/// Of the document's suggestions that were made with `options`: the one of which least is typed
/// before `cursor`, so that it begins nearest to it.
KnownSuggestion known_suggestion(const DocumentState& document, const Options& options,
                                 const text::Snapshot& snapshot, std::size_t cursor);
/// Remembers a suggestion, in the place of one for the same text; the oldest of too many goes.
void remember(DocumentState& document, Suggestion suggestion);

}  // namespace efimd::completion
