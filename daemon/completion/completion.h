#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/completion/documents/event.h"
#include "daemon/prompt/path_head.h"
#include "daemon/text/document.h"
#include "engine/engine.h"

namespace efimd::completion {

/// Where generation ends besides the end of text and budgets; stop_rules.h says it in full.
enum class StopRule { kNone, kLine, kBlock };

/// Whether the typed end of a prompt is healed (healing.h); kAuto: unless the model was trained on
/// broken words.
enum class Healing { kAuto, kOn, kOff };

inline constexpr float kConfidenceDefault = 0.1F;

struct Options {
  int tokens_max = 64;
  int time_max_ms = 3000;  ///< for generation, from its start; then what is there is shown
  StopRule stop = StopRule::kBlock;
  float temperature = 0.0F;
  float top_p = 1.0F;
  int top_k = 0;
  std::uint64_t seed = 0;
  Healing healing = Healing::kAuto;
  /// Least product of the probabilities of a suggestion's tokens (confidence.h); 0: any.
  float confidence = kConfidenceDefault;
  bool operator==(const Options&) const = default;
};

/// What an answer cost and where it came from; written to the editor as efim/receipt.
struct Receipt {
  Event event = Event::kOpen;
  /// "engine" once the model was asked for this answer; "typed-through" when it is the rest of what
  /// was shown, "prefetched" when idle time prepared it, "remembered" when nothing changed since it
  /// was shown; else "none".
  std::string source = "none";
  int prompt_tokens = 0;
  int reused_tokens = 0;
  int evaluated_tokens = 0;  ///< prompt tokens evaluated for this request; + reused = prompt
  int restored_tokens =
      0;  ///< of the reused ones, those that came from the store and are first used
  int generated_tokens = 0;  ///< chosen behind the cursor
  /// Tokens at the prompt's end that the model spelled otherwise; they are among the prompt's.
  int healed_tokens = 0;
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
};

/// The user waved away what was shown in `document` while its text was that of `snapshot`.
struct Dismissal {
  DocumentKey document;
  text::SnapshotPtr snapshot;
};

struct OpenedDocument;
class PageKeeper;

/// Loads the model, on the engine thread. `progress` takes 0..1 and may be called from that thread
/// only.
using EngineFactory = std::function<Result<std::unique_ptr<engine::Engine>>(
    const std::function<void(double)>& progress, std::stop_token stop)>;

enum class EngineState { kLoading, kReady, kFailed };

/// What the status shows; a copy, taken under the service's own synchronization.
struct ServiceStatus {
  EngineState state = EngineState::kLoading;
  double load_progress = 0;
  std::string failure;  ///< Error::message() when kFailed
  std::string device_kind, device_name;
  int window_tokens = 0;  ///< most tokens of a prompt (A-4); 0 until ready
  /// Measured after loading, and learned since; 0 and empty when Settings fixed the window.
  double prompt_tokens_per_s = 0;
  struct StepCost {
    int tokens = 0;
    double ms = 0;
  };
  std::vector<StepCost> step_costs;  ///< of steps of 1, 4, 16, ... tokens
  engine::KvUsage kv;
  std::uint64_t restored_tokens = 0;  ///< by all answers
  double saved_s = 0;                 ///< what evaluating these would have taken
  struct File {
    std::string uri;
    bool open = false;
    int anchors = 0;
    int tokens_device = 0;
    double last_use_s = 0;   ///< seconds ago
    std::uint64_t hits = 0;  ///< requests that reused an anchor
    std::uint64_t misses = 0;
  };
  std::vector<File> files;
  struct EventCounts {
    std::uint64_t count = 0;
    double evaluated_mean = 0, reused_mean = 0;
    double first_token_ms_p50 = 0, first_token_ms_p95 = 0;  ///< of the last 512
  };
  std::map<std::string, EventCounts> events;
  std::map<std::string, std::uint64_t> silence;  ///< reason, without its details -> count
  /// How the last requests that asked the model were planned, newest first.
  struct PlanNote {
    std::string uri;
    std::string event;
    std::string taken;                    ///< prompt::describe()
    std::vector<std::string> considered;  ///< the others
  };
  std::vector<PlanNote> plans;
};

/// Runs completions on its own engine thread: request -> plan -> sequence -> generated text -> the
/// item shown.
///
/// The newest request wins: a newer one for the same document stops the older, which is answered
/// superseded within a step of the engine (a chunk of the prompt, or one generated token).
///
/// Thread: submit(), close() and status() from any. Nothing here waits for the model: while it
/// loads or when it could not be loaded, requests are answered at once with the reason.
/// `done` is called exactly once for each submitted request: on the engine thread, also at
/// destruction (superseded); or, for a request that is refused at once (loading, no model, queue
/// full), on the submitting thread before submit() returns.
/// Fails: never; what goes wrong is an answer with a reason.
class CompletionService {
 public:
  struct Settings {
    std::size_t requests_max = 256;  ///< queued; more are answered with a reason
    std::size_t documents_max = 64;  ///< anchors and sequences kept, least recently used first out
    int prompt_tokens_max = 0;       ///< 0: as many as the measured speed allows (A-4)
    int cold_prompt_ms = 2000;       ///< what evaluating a whole prompt may take
    std::shared_ptr<PageKeeper> keeper = nullptr;  ///< the engine's store; null: none
    /// Whether the machine has power to spare for work that nobody waits for; asked on the engine
    /// thread before each such work.
    std::function<bool()> background = [] { return true; };
    std::chrono::milliseconds settle{1000};  ///< Budgets::settle
    /// Idleness after which the device's memory is given back; the next request brings it again. 0: never.
    std::chrono::seconds release_after{0};
    /// Called on the engine thread when nothing is left to do before the next message.
    std::function<void()> on_idle = [] {};
  };
  /// `on_state_change` is called on the engine thread when loading has ended or failed.
  CompletionService(EngineFactory factory, Settings settings,
                    std::function<void()> on_state_change);
  /// Stops what runs, answers what is outstanding, joins. Waits for the factory, which sees its
  /// stop token fire.
  ~CompletionService();

  void submit(Request request, std::function<void(Outcome)> done);
  /// The editor closed the document: its requests are superseded, its anchor is kept as the first
  /// to be dropped.
  void close(DocumentKey document);
  /// The editor opened the document: what is stored of it is brought back in idle time.
  void open(OpenedDocument opened);
  /// The user came to the document: idle time takes it first.
  void focus(DocumentKey document);
  /// The user waved away what is shown: it is not suggested there again.
  void dismiss(Dismissal dismissal);
  /// Drops what is held of the document, or of all below it, or of all documents when `uri` is
  /// empty; then calls `done`, on the engine thread, or at once when the service is at its end.
  void forget(std::string uri, std::function<void()> done);
  ServiceStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::completion
