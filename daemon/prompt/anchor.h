#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/prompt/path_head.h"
#include "daemon/text/document.h"
#include "engine/tokenizer/tokenizer.h"

// The part of a prompt that stays while the user types. The rules in full: docs/efim.md.
//
//   an edit inside the hole keeps the anchor; one that touches before or after makes it stale.
//   before ends where tokens never reach across, at a line's start or earlier.
//   after begins on the next line, or at the cursor if the line goes on with more than
//        closers.
//   token ids are state; generated tokens keep their ids when they are accepted.

namespace efimd::prompt {

/// How much of its surroundings a prompt shows the model, from most to least.
enum class View : std::uint8_t {
  kFull,        ///< the spine up to the cut, and a whole after
  kPartAfter,   ///< the spine up to the cut, and some of after
  kShortAfter,  ///< the spine up to the cut, and a few lines after the cursor
  kFirst,       ///< the first window's spine up to the cut, and its after
  kFirstShort,  ///< the same with a few lines after the cursor
  kNear,        ///< a few lines on both sides
};

/// Whether it shows the first window, or less, and not the wide one.
constexpr bool is_of_first_window(View view) { return view >= View::kFirst; }

/// A token after <MID>, and the bytes of the increment that it covers.
struct CoveredToken {
  engine::TokenId id = engine::kNoToken;
  std::size_t bytes = 0;
  /// Chosen by the model: keeps its id for as long as its bytes stay.
  bool generated = false;
  bool operator==(const CoveredToken&) const = default;
};

/// A frozen before and after, and the tokens of the increment so far. Offsets are bytes of version
/// `serial`.
struct Anchor {
  /// Whether before and after still are the text at these offsets.
  enum class State : std::uint8_t {
    kGood,
    kStale,  ///< edited; its leading tokens stay usable, and an undo makes it good again
    kLost,   ///< its place is unknown now
  };

  View view = View::kFull;
  State state = State::kGood;
  /// Other files have a newer head than `path` has, or it lacks what was edited elsewhere.
  bool lacks_head = false;
  std::uint64_t serial = 0;
  std::size_t window_begin = 0;         ///< w0
  std::size_t cut = 0;                  ///< a
  std::size_t resume = 0;               ///< b
  std::size_t window_end = 0;           ///< w1
  PathHead path;                        ///< path_head() of its file
  std::vector<engine::TokenId> before;  ///< tokens of text[w0, a)
  std::vector<engine::TokenId> after;   ///< tokens of text[b, w1)
  std::vector<engine::TokenId> edits;   ///< edited_texts(), behind after
  std::vector<CoveredToken> increment;  ///< tokens of text[a, a + sum of bytes)
  /// The model's last completion, from byte `offered_begin` of the hole on. Its tokens are adopted
  /// as far as the text comes to agree with it, by accepting or by typing the same.
  std::vector<CoveredToken> offered;
  std::size_t offered_begin = 0;
};

/// Remembers what was generated after the anchor's increment. The first of `generated` spell the
/// increment's last `replaced` tokens again.
void offer(Anchor& anchor, std::vector<CoveredToken> generated, int replaced = 0);

/// Carries the anchor over the edits to `snapshot`. Compares its text if it is stale and
/// something was edited; otherwise it costs next to nothing.
void follow(Anchor& anchor, const text::Snapshot& snapshot, const engine::Tokenizer& tokenizer);

/// Carries the anchor over to another text of the same name, such as a file that was closed and
/// opened again. It is good if its tokens spell the text at its offsets, else lost.
void rebase(Anchor& anchor, const text::Snapshot& snapshot, const engine::Tokenizer& tokenizer);

}  // namespace efimd::prompt
