#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "daemon/completion/in_flight.h"
#include "daemon/completion/remote/remote_engine.h"
#include "daemon/completion/request.h"
#include "daemon/completion/status.h"
#include "daemon/recall/index.h"
#include "engine/engine.h"
#include "engine/lasting_engine.h"

namespace efimd::completion {

struct OpenedDocument;
class PaceKeeper;
class PageKeeper;
class TasteKeeper;

/// Loads the model, on the engine thread. `progress` takes 0..1 and may be called from that thread
/// only.
using EngineFactory = std::function<Result<std::unique_ptr<engine::Engine>>(
    const std::function<void(double)>& progress, std::stop_token stop)>;

/// Runs completions on its own engine thread: request -> plan -> sequence -> generated text -> the
/// item shown.
///
/// The newest request wins. A newer one for the same document stops the older one. That is answered
/// as superseded within a step of the engine (a chunk of the prompt, or one generated token).
///
/// Thread: submit(), close() and status() from any. Nothing here waits for the model. If it is
/// still loading or could not be loaded, requests are answered at once with the reason. `done` is
/// called exactly once for each submitted request, on the engine thread, also at destruction
/// (superseded). A request that is refused at once (loading, no model, queue full) calls it on the
/// submitting thread, before submit() returns. Never fails: a failure is an answer with a reason.
class CompletionService {
 public:
  struct Settings {
    std::size_t requests_max = 256;  ///< queued; more are answered with a reason
    std::size_t documents_max = 64;  ///< anchors and sequences kept, least recently used first out
    int prompt_tokens_max = 0;       ///< of a fixed window, for tests and benchmarks; 0: by A-4
    std::optional<int> window_tokens =
        std::nullopt;  ///< of text in the window (A-4); unset: the default
    std::shared_ptr<PageKeeper> keeper = nullptr;      ///< the engine's store; null: none
    std::shared_ptr<TasteKeeper> taste = nullptr;      ///< keeps what users take; null: not kept
    std::shared_ptr<const PaceKeeper> pace = nullptr;  ///< keeps what is measured; null: not kept
    RemoteSettings remote = {};                        ///< asked before the engine of this machine
    /// Whether the machine has power to spare for work that nobody waits for. Called on the engine
    /// thread before each such work.
    std::function<bool()> background = [] { return true; };
    std::chrono::milliseconds settle{1000};  ///< Budgets::settle
    /// Called on the engine thread in idle time, and when a document is opened or closed. It must not
    /// wait; the answer comes with show_head(). Null: prompts show no other files.
    std::function<void(HeadQuestion)> ask_head = nullptr;
    /// Whether prompts show what was edited elsewhere, if the model has a form for it.
    bool shows_edits = false;
    /// For which a document's KV stays in memory after an editor closed it, where that is the machine's
    /// own memory.
    std::chrono::milliseconds closed_kept{30'000};
    /// Idle time after which the device's memory is given back; the next request takes it again. 0:
    /// never.
    std::chrono::seconds release_after{0};
    /// At most so long where the CPU stands in for a device that failed, also if `release_after` is 0:
    /// the next request then tries that device again.
    std::chrono::seconds retry_after = engine::LastingEngine::kRetryAfter;
    /// Whether what made loading fail has changed since, so that the next request loads again and waits
    /// for that. Called on the engine thread for each request without a model. Null: never.
    std::function<bool()> may_load_again = nullptr;
    /// Called on the engine thread when nothing is left to do before the next message.
    std::function<void()> on_idle = [] {};
  };
  /// `on_state_change` is called on the engine thread whenever loading has ended or failed, and when the
  /// engine elsewhere stops or begins to answer.
  CompletionService(EngineFactory factory, Settings settings,
                    std::function<void()> on_state_change);
  /// Stops the running request, answers the waiting ones, joins. Waits for the factory, whose stop
  /// token fires.
  ~CompletionService();

  void submit(Request request, std::function<void(Outcome)> done);
  /// The editor closed the document: its requests are superseded, its anchor is kept as the first
  /// to be dropped.
  void close(DocumentKey document);
  /// The editor opened the document: what is stored of it is brought back in idle time.
  void open(OpenedDocument opened);
  /// The user came to the document: idle time takes it first.
  void focus(DocumentKey document);
  /// The user dismissed the shown suggestion: it is not suggested there again.
  void dismiss(Dismissal dismissal);
  /// Drops all state of these documents, and of all below each; of all documents if one is empty.
  /// Then calls `done`, on the engine thread, or at once if the service is ending.
  void forget(std::vector<std::string> uris, std::function<void()> done);
  /// The answer to Settings::ask_head.
  void show_head(HeadAnswer answer);
  /// Changes the text that recall shows: `change` runs on the engine thread, in the order of posting.
  /// It must be short: batches of files are sorted before (recall::make_batch). Of changes that are about
  /// a `document`, the newest is enough.
  void change_index(std::function<void(recall::Index&)> change,
                    std::optional<DocumentKey> document = {});
  /// Forgets what the user took and rejected, in memory and in the file.
  void forget_taste();
  ServiceStatus status() const;
  /// The requests that are not answered yet. Outlives the service where it is shared.
  std::shared_ptr<InFlight> in_flight() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::completion
