#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/prompt/path_head.h"
#include "daemon/text/document.h"

namespace efimd::completion {

// What is asked of completion and what it answers: values, which every part of it may see.

/// What the user did since the last request for this document. documents/event.h says how it is
/// found, docs/protocol.md how it is named.
enum class Event { kType, kNewline, kAccept, kDelete, kJump, kSwitch, kEdit, kOpen, kRepeat };
std::string_view event_name(Event event);

/// Where generation ends besides the end of text and budgets; stop_rules.h says it in full.
enum class StopRule { kNone, kLine, kBlock };

/// Whether the typed end of a prompt is healed (healing.h); kAuto: unless the model was trained on
/// broken words.
enum class Healing { kAuto, kOn, kOff };

inline constexpr float kConfidenceDefault = 0.1F;

/// How sure a suggestion must be to be shown.
enum class Eagerness : std::uint8_t { kLow, kMedium, kHigh };

/// The least confidence in text that the model wrote (Options::confidence).
constexpr float least_model_confidence(Eagerness eagerness) {
  switch (eagerness) {
    case Eagerness::kLow:
      return 0.3F;
    case Eagerness::kHigh:
      return 0.03F;
    case Eagerness::kMedium:
      break;
  }
  return kConfidenceDefault;
}

struct Options {
  int tokens_max = 64;
  int time_max_ms = 3000;  ///< for generation, from its start; then what is there is shown
  StopRule stop = StopRule::kBlock;
  float temperature = 0.0F;
  float top_p = 1.0F;
  int top_k = 0;
  std::uint64_t seed = 0;
  Healing healing = Healing::kAuto;
  Eagerness eagerness = Eagerness::kMedium;
  bool recall = true;  ///< text from recall may be shown, and drafted (A-12)
  /// Least product of the probabilities of a suggestion's tokens (confidence.h); 0: any; unset: by
  /// eagerness.
  std::optional<float> confidence = {};
  bool operator==(const Options&) const = default;
};

/// What an answer cost and where it came from; written to the editor as efim/receipt.
struct Receipt {
  Event event = Event::kOpen;
  /// "engine" once the model was asked for this answer; "typed-through" when it is the rest of what
  /// was shown, "prefetched" when idle time prepared it, "remembered" when nothing changed since it
  /// was shown; "recalled" when it is text of the user's own, "recalled+model" when the model
  /// would have written the same; else "none".
  std::string source = "none";
  int prompt_tokens = 0;
  int reused_tokens = 0;
  int evaluated_tokens = 0;  ///< prompt tokens evaluated for this request; + reused = prompt
  int restored_tokens =
      0;  ///< of the reused ones, those that came from the store and are first used
  int generated_tokens = 0;  ///< chosen behind the cursor
  /// Tokens at the prompt's end that the model spelled otherwise; they are among the prompt's.
  int healed_tokens = 0;
  int drafted_tokens = 0;     ///< proposed to the model for one step to judge; not prompt tokens
  int accepted_tokens = 0;    ///< of these, those that the model would have chosen itself
  double queue_ms = 0;        ///< from the request's arrival to the start of work
  double first_token_ms = 0;  ///< from the request's arrival; 0 when no token was chosen
  double total_ms = 0;
  /// The product of the probabilities of the suggestion's tokens; of its first unit's, where the
  /// model was not sure enough of that. Unset where no token was looked at.
  std::optional<double> confidence;
  std::string reason;  ///< why there is no suggestion; empty when there is one
};

/// Text to put in place of bytes [replace_begin, replace_end) of the request's snapshot.
/// replace_begin is the cursor, or Selected::begin; replace_end is past it, on the same line, only when the text
/// swallows what stands there (auto-closed brackets). Line ends are "\n".
struct Item {
  std::string text;
  std::size_t replace_begin = 0;
  std::size_t replace_end = 0;
};

/// Suggestions of a request by hand, at most.
inline constexpr int kCandidatesMax = 3;

struct Outcome {
  std::optional<Item> item;
  std::vector<Item> more;  ///< of a request by hand: other suggestions, likelier ones first
  Receipt receipt;
  /// Stopped by its token, by a newer request for its document or by the document's or the
  /// service's end: nothing to show, not even an empty list.
  bool superseded = false;
};

/// A document as completion knows it: one open text of one editor session.
struct DocumentKey {
  std::uint64_t session = 0;
  std::string uri;
  auto operator<=>(const DocumentKey&) const = default;
};

/// Where a document stands among the user's other text. Texts of one project are shown each
/// other; the empty project is one of its own.
struct TextHome {
  std::string project;  ///< the project's root folder
  std::string path;     ///< the file's path, or the URI of what is no file; empty: not for recall
};

/// What the editor's completion list has selected: `text` in place of bytes [begin, end) of the
/// snapshot. An item must begin with it and replace no less; VS Code shows no other.
struct Selected {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
};

struct Request {
  DocumentKey document;
  text::SnapshotPtr snapshot;
  std::size_t cursor = 0;
  std::string language_id = {};  ///< LSP's; empty or unknown: by the URI's ending (language.h)
  std::optional<Selected> selected = {};
  bool by_hand = false;  ///< LSP's triggerKind Invoked: several suggestions are welcome
  Options options = {};
  std::stop_token stop;
  std::chrono::steady_clock::time_point arrived;
  bool may_be_stored = false;  ///< whether KV of the document may go to the disk (ST-2)
  prompt::FileName file = {};  ///< counts at the document's first opening or request
  TextHome home = {};
};

/// The user waved away what was shown in `document` while its text was that of `snapshot`.
struct Dismissal {
  DocumentKey document;
  text::SnapshotPtr snapshot;
};

}  // namespace efimd::completion
