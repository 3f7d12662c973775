#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/source.h"
#include "daemon/context/head.h"
#include "daemon/prompt/path_head.h"
#include "daemon/text/document.h"

namespace efimd::completion {

// Requests to completion and their answers: values that every part of it may see.

/// The user's action since the last request for this document. documents/event.h finds it,
/// docs/protocol.md names it.
enum class Event { kType, kNewline, kAccept, kDelete, kJump, kSwitch, kEdit, kOpen, kRepeat };
std::string_view event_name(Event event);

/// The place where generation ends, besides the end of text and budgets; stop_rules.h has it in
/// full.
enum class StopRule { kNone, kLine, kBlock };

/// Whether the typed end of a prompt is healed (healing.h); kAuto: unless the model was trained on
/// broken words.
enum class Healing { kAuto, kOn, kOff };

inline constexpr float kConfidenceDefault = 0.1F;

/// The chance that a suggestion needs to be shown.
enum class Eagerness : std::uint8_t {
  kLow,
  kMedium,
  kHigh,
  kAuto,  ///< by what the user takes (Taste); resolved before a request is served
};

/// What goes for the user's eagerness; kAuto is kMedium until it is resolved.
template <typename Value>
constexpr Value by_eagerness(Eagerness eagerness, Value low, Value medium, Value high) {
  if (eagerness == Eagerness::kLow) return low;
  return eagerness == Eagerness::kHigh ? high : medium;
}

/// The least confidence in text that the model wrote (Options::confidence).
constexpr float least_model_confidence(Eagerness eagerness) {
  return by_eagerness(eagerness, 0.3F, kConfidenceDefault, 0.03F);
}

/// The least probability of the first token that the model writes behind a line's text. There the
/// line's end is its rival (unit_ends.cpp has the numbers).
constexpr double least_first_probability(Eagerness eagerness) {
  return by_eagerness(eagerness, 0.7, 0.6, 0.3);
}

struct Options {
  int tokens_max = 64;
  int time_max_ms = 3000;  ///< for generation, from its start; then the text so far is shown
  StopRule stop = StopRule::kBlock;
  float temperature = 0.0F;
  float top_p = 1.0F;
  int top_k = 0;
  std::uint64_t seed = 0;
  Healing healing = Healing::kAuto;
  Eagerness eagerness = Eagerness::kMedium;
  bool recall = true;  ///< text from recall may be shown, and drafted (A-12)
  bool drafts = true;  ///< of recall: they change what an answer takes, never what is generated
  /// Least product of the probabilities of a suggestion's tokens (confidence.h); 0: any; unset: by
  /// eagerness.
  std::optional<float> confidence = {};
  bool operator==(const Options&) const = default;
};

/// An answer's cost and source; written to the editor as efim/receipt.
struct Receipt {
  Event event = Event::kOpen;
  std::string source = std::string(source::kNone.name);
  int prompt_tokens = 0;
  int reused_tokens = 0;
  int evaluated_tokens = 0;  ///< prompt tokens evaluated for this request; + reused = prompt
  /// Of the reused ones, those from the store that are used for the first time.
  int restored_tokens = 0;
  int generated_tokens = 0;  ///< chosen after the cursor
  /// Tokens at the prompt's end that the model spelled otherwise; the prompt's count has
  /// them.
  int healed_tokens = 0;
  int steps = 0;            ///< of the engine after the prompt's own, to choose these
  int drafted_tokens = 0;   ///< proposed to the model for one step to judge; not prompt tokens
  int accepted_tokens = 0;  ///< of these, those that the model would have chosen itself
  /// Of the prompt: its view (prompt::view_name()), and how much of the file it shows, 0 to 1. Empty
  /// where the model was not asked.
  std::string_view view;
  double shown = 0;
  int before_tokens = 0;      ///< of the file's text before the increment
  int typed_tokens = 0;       ///< of the increment, up to the cursor
  int after_tokens = 0;       ///< of the file's text after the cursor
  int edit_tokens = 0;        ///< of what was edited elsewhere (A-14)
  int head_files = 0;         ///< other files that it shows (A-13)
  int head_tokens = 0;        ///< of these
  double queue_ms = 0;        ///< from the request's arrival to the start of work
  double first_token_ms = 0;  ///< from the request's arrival; 0 when no token was chosen
  double total_ms = 0;
  /// The product of the probabilities of the suggestion's tokens; only of its first unit's, if the
  /// model was not sure enough of more. Unset if no token was looked at.
  std::optional<double> confidence;
  std::string reason;  ///< why there is no suggestion; empty when there is one
};

/// Text to put in place of bytes [replace_begin, replace_end) of the request's snapshot.
/// replace_begin is the cursor, or Selected::begin. replace_end is past it, on the same line, only
/// if the text swallows auto-closed brackets there. Line ends are "\n".
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
  /// Stopped by its token, by a newer request for its document, or by the document's or the
  /// service's end. There is nothing to show, not even an empty list.
  bool superseded = false;
};

/// A document as completion knows it: one open text of one editor session.
struct DocumentKey {
  std::uint64_t session = 0;
  std::string uri;
  auto operator<=>(const DocumentKey&) const = default;
};

/// A document's place among the user's other text. Texts of one project are shown each
/// other; the empty project is one of its own.
struct TextHome {
  std::string project;  ///< the project's root folder
  std::string path;     ///< the file's path, or the URI if it is no file; empty: not for recall
  bool in_workspace = false;  ///< the project is a folder of an editor's workspace
};

/// The selected entry of the editor's completion list: `text` in place of bytes [begin, end) of the
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
  /// The text has a suggestion that the user has not taken: nothing is learned of it.
  bool ahead = false;
  bool waits = false;  ///< until nobody else waits, because its client asks for much
  Options options = {};
  std::stop_token stop;
  std::chrono::steady_clock::time_point arrived;
  bool may_be_stored = false;  ///< whether KV of the document may go to the disk (ST-2)
  bool may_leave = false;      ///< whether its text may go to the engine elsewhere (R-1)
  prompt::FileName file = {};  ///< counts at the document's first opening or request
  TextHome home = {};
  /// Hears what the answer's item begins with, each time longer, before the answer; on the engine
  /// thread. Null: nobody wants to know.
  std::function<void(const Item&)> partial = nullptr;
};

/// What do prompts for this document show of other files? Without a snapshot the document was
/// closed, and nobody waits for an answer.
struct HeadQuestion {
  DocumentKey document;
  text::SnapshotPtr snapshot;
  prompt::FileName file = {};
  TextHome home = {};
  /// The part of the text that prompts show: what it mentions counts.
  std::size_t window_begin = 0, window_end = std::string::npos;
  std::size_t bytes_max = std::string::npos;  ///< of declarations that prompts have room for
};
/// The answer. Slots are named by the path from the repository's root.
struct HeadAnswer {
  DocumentKey document;
  context::HeadPtr head;
  std::vector<std::string> shown = {};  ///< URIs of the files that the slots are of
};

/// The user dismissed the suggestion shown in `document` while its text was that of `snapshot`.
struct Dismissal {
  DocumentKey document;
  text::SnapshotPtr snapshot;
};

}  // namespace efimd::completion
