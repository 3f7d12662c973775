#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "daemon/completion/request.h"
#include "daemon/completion/status.h"
#include "daemon/recall/index.h"
#include "engine/engine.h"

namespace efimd::completion {

struct OpenedDocument;
class PageKeeper;

/// Loads the model, on the engine thread. `progress` takes 0..1 and may be called from that thread
/// only.
using EngineFactory = std::function<Result<std::unique_ptr<engine::Engine>>(
    const std::function<void(double)>& progress, std::stop_token stop)>;

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
  /// Changes the text that recall shows: `change` runs on the engine thread, in the order of posting.
  /// It must be short: batches of files are sorted before (recall::make_batch).
  void change_index(std::function<void(recall::Index&)> change);
  ServiceStatus status() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::completion
