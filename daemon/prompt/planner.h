#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/text/document.h"
#include "engine/tokenizer/tokenizer.h"

namespace efimd::prompt {

/// Budgets in tokens, from the model's context and the device's measured speed.
struct Windows {
  int before_max = 0;
  int after_max = 0;
  int increment_max = 0;  ///< a longer hole asks for a new anchor

  /// Shares `prompt_tokens` out: what is left after generation.
  static Windows of(int prompt_tokens);
};

/// A token behind <MID> and the bytes of the increment that it covers.
struct CoveredToken {
  engine::TokenId id = engine::kNoToken;
  std::size_t bytes = 0;
  bool generated =
      false;  ///< chosen by the model: keeps its id for as long as its bytes stay (A-7)
  bool operator==(const CoveredToken&) const = default;
};

/// A frozen before and after, and the tokens of the increment so far. Offsets are bytes of version
/// `serial`.
struct Anchor {
  std::uint64_t serial = 0;
  std::size_t window_begin = 0;         ///< w0
  std::size_t cut = 0;                  ///< a
  std::size_t resume = 0;               ///< b
  std::size_t window_end = 0;           ///< w1
  std::vector<engine::TokenId> before;  ///< tokens of text[w0, a)
  std::vector<engine::TokenId> after;   ///< tokens of text[b, w1)
  std::vector<CoveredToken> increment;  ///< tokens of text[a, a + sum of bytes)
  /// What the model generated last time, behind byte `offered_begin` of the hole: adopted as far as
  /// the text comes to agree with it, by accepting or by typing the same.
  std::vector<CoveredToken> offered;
  std::size_t offered_begin = 0;
};

/// Remembers what was generated behind the anchor's increment, whose last `replaced` tokens the
/// first of `generated` spell again.
void offer(Anchor& anchor, std::vector<CoveredToken> generated, int replaced = 0);

/// Why the plan has the anchor that it has; for receipts and tests.
enum class AnchorChange {
  kKept,
  kFirst,        ///< there was none
  kJump,         ///< the cursor left the hole
  kEditOutside,  ///< an edit touched before or after
  kHistoryLost,  ///< more edits than a snapshot remembers
  kHoleTooLong,  ///< the increment outgrew its window
  kTail,         ///< more than closers and blanks stands between the cursor and after
};

/// What to show the model for one cursor position.
struct Plan {
  Anchor anchor;
  AnchorChange change = AnchorChange::kKept;
  std::vector<engine::TokenId> tokens;  ///< the whole prompt, ready for Engine::hold()
  std::size_t cursor = 0;
  std::size_t tail_end = 0;  ///< text[cursor, tail_end) is the tail: closers and blanks only (A-3)
};

/// Plans the prompt for `cursor` (a byte of `snapshot`, on a code point boundary): keeps `current`
/// when the cursor is in its hole and nothing but the hole changed, else makes a new anchor,
/// whose leading tokens are those of the old one as far as the text agrees. Pure: no clock, no
/// state.
///
/// kUnsupported when the tokenizer's FIM order is not PSM.
Result<Plan> plan(const Anchor* current, const text::Snapshot& snapshot, std::size_t cursor,
                  const engine::Tokenizer& tokenizer, const Windows& windows);

}  // namespace efimd::prompt
