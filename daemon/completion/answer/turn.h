#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "daemon/completion/documents/documents.h"
#include "daemon/completion/documents/taste.h"
#include "daemon/completion/fit/cursor_context.h"
#include "daemon/completion/mailbox.h"
#include "daemon/completion/request.h"
#include "daemon/completion/silence.h"
#include "daemon/completion/status.h"

namespace efimd::completion {

/// Why a request has nothing to show. That is an answer, not an Error.
struct Nothing {
  bool superseded = false;
  Silence silence;
};
template <class T>
using Or = tl::expected<T, Nothing>;

inline tl::unexpected<Nothing> nothing(std::string_view reason, std::string detail = {}) {
  return tl::unexpected(Nothing{false, {reason, std::move(detail)}});
}
inline tl::unexpected<Nothing> superseded() { return tl::unexpected(Nothing{true, {}}); }

/// The place of a completion for `request` stands in `snapshot`, a version of its text. Borrows the
/// snapshot.
CursorContext context_of(const Request& request, const text::Snapshot& snapshot,
                         std::size_t cursor);

/// What Taste knows the request's language by.
std::string language_of(const Request& request);

struct Recalled;

/// One request on its way through the engine thread, and its results so far.
///
/// Borrows the job and the document's state: both outlive it.
struct Turn {
  const Job& job;
  DocumentState& document;
  std::size_t cursor = 0;  ///< on a code point border
  Receipt receipt = {};
  std::optional<ServiceStatus::PlanNote> plan = {};  ///< set once the model was asked
  /// The model's word on each of recall's candidates, if it was asked.
  std::vector<std::vector<JudgedToken>> judged = {};
  const Taste* taste = nullptr;  ///< of the user; null: unknown
  std::string accepted = {};     ///< source of the suggestion that the user took; empty: none
  /// What may be answered instead of the model's text; null: nothing is told before the answer.
  const Recalled* rival = nullptr;
  mutable std::optional<CursorContext> known_context = {};  ///< context(), once it was read

  const Request& request() const { return job.request; }
  const text::Snapshot& snapshot() const { return *job.request.snapshot; }
  /// The text around the cursor is read once: that takes as long as a step of a small model.
  const CursorContext& context() const;
  /// Writes into the receipt what the prompt of `anchor` shows.
  void note_window(const prompt::Anchor& anchor);
};

}  // namespace efimd::completion
