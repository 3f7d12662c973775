#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/prompt/anchor.h"
#include "daemon/prompt/spine.h"
#include "daemon/text/document.h"
#include "engine/tokenizer/tokenizer.h"

// The prompt is [BOS] [PRE] before [SUF] after [MID] increment, and generation continues after it
// (EFIM, arXiv 2505.21889). A head may stand in front, and edits of other files behind after
// . While the cursor stays in the hole, only the increment's tokens change,
// so everything before them keeps its KV. A model that reads the suffix first gets
// [SUF] after [PRE] before [MID] increment (without [MID] if it has none). Typed text comes last
// there, too, and the same rules hold, but prompts for two places share nothing.
//
// Everything here is pure: no clock, no state, no I/O.

namespace efimd::prompt {

/// Budgets in tokens: those of the window, and of the poorer views.
struct Windows {
  int before_max = 0;
  int after_max = 0;
  int whole_max = 0;      ///< a text of no more tokens is shown whole; 0: before_max decides
  int increment_max = 0;  ///< a longer hole asks for a new anchor
  int part_after_max = 0;
  int short_after_max = 0;
  int near_before_max = 0;
  int near_after_max = 0;
  /// Of the first window, which idle time evaluates before it widens; 0: the window is the first.
  int first_before_max = 0;
  int first_after_max = 0;
  int first_increment_max = 0;

  bool has_first() const { return first_before_max > 0; }
  int increment_max_of(View view) const {
    return has_first() && is_of_first_window(view) ? first_increment_max : increment_max;
  }

  /// Divides `prompt_tokens`, the window without the room to generate. A near view gets
  /// `near_tokens`.
  static Windows of(int prompt_tokens, int near_tokens);
  /// A window that shows `text_tokens` of text and has room for an increment of an eighth of that.
  /// `first` is what idle time begins with.
  static Windows wide(int text_tokens, const Windows& first);
};

/// If an increment is longer, idle time prepares an anchor that has it in its before.
inline constexpr std::size_t kGrownTokens = 64;

/// Why an anchor does not serve a cursor.
enum class AnchorChange {
  kJump,         ///< the cursor left the hole
  kEditOutside,  ///< an edit touched before or after, or more edits came than are remembered
  kHoleTooLong,  ///< the increment outgrew its window
  kTail,         ///< more than closers and blanks stands between the cursor and after
};
std::string_view view_name(View view);
/// What the spine of the view's window may hold.
Spine::Limits limits_of(View view, const Windows& windows);

/// The text to show the model for one cursor position.
struct Plan {
  Anchor anchor;
  std::vector<engine::TokenId> tokens;  ///< the whole prompt, ready for Engine::prefill()
  std::size_t cursor = 0;
  std::size_t tail_end = 0;  ///< text[cursor, tail_end) is the tail: closers and blanks only (A-3)
  double shown = 1;          ///< how much of the file's bytes the prompt shows, 0 to 1
};

/// How much of the file's bytes a prompt of `anchor` for that cursor shows, 0 to 1; the tail, which
/// no prompt has, does not count.
double shown_part(const Anchor& anchor, const text::Snapshot& snapshot, std::size_t cursor);

/// kUnsupported, with a remedy, if the model cannot fill in text between two others.
Result<void> can_fill_in(const engine::Tokenizer& tokenizer);

/// The whole prompt of an anchor: its path, before, after and increment in the model's order.
std::vector<engine::TokenId> prompt_tokens(const Anchor& anchor,
                                           const engine::Tokenizer& tokenizer);

/// The plan that keeps `anchor` for a cursor in its hole, or why it cannot. follow() has
/// brought the anchor to `snapshot`. `cursor` is a byte of it on a code point border.
tl::expected<Plan, AnchorChange> continued(const Anchor& anchor, const text::Snapshot& snapshot,
                                           std::size_t cursor, const engine::Tokenizer& tokenizer,
                                           const Windows& windows);

/// A plan with a new anchor. Brings `spine`, the one of the view's window, to the snapshot and to a
/// window that shows the cursor; a near view leaves it alone. Where a poorer view shows as much as a
/// full one the anchor's view is full.
Plan anchored(View view, const text::Snapshot& snapshot, std::size_t cursor, Spine& spine,
              const engine::Tokenizer& tokenizer, const Windows& windows);

/// The same for a cursor in the hole of `narrower`, an anchor of a poorer view over the same spine.
/// Before and after begin where its own do, so their KV serves, too.
Plan widened(View view, const Anchor& narrower, const text::Snapshot& snapshot, std::size_t cursor,
             Spine& spine, const engine::Tokenizer& tokenizer, const Windows& windows);

/// The same plan with what was edited elsewhere behind its after, see edited_texts().
Plan with_edits(Plan plan, std::vector<engine::TokenId> edits, const engine::Tokenizer& tokenizer);

/// The plan of a client without EFIM, as a baseline. Text up to the cursor is before, text from the
/// cursor on is after; there is no increment. So every typed character changes the tokens before
/// after. Uses the windows of a full view.
Plan plain(const text::Snapshot& snapshot, std::size_t cursor, Spine& spine,
           const engine::Tokenizer& tokenizer, const Windows& windows);

/// The leading tokens that every prompt of a full view shares: what is evaluated to evaluate the
/// spine. Empty for models that read the suffix first.
std::vector<engine::TokenId> spine_prompt(const Spine& spine, const engine::Tokenizer& tokenizer);

}  // namespace efimd::prompt
