#include "daemon/completion/completion.h"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>
#include <variant>

#include "daemon/completion/answer/worker.h"
#include "daemon/completion/documents/taste_keeper.h"
#include "daemon/completion/loading.h"
#include "daemon/completion/mailbox.h"
#include "daemon/completion/silence.h"
#include "daemon/completion/status_board.h"

// One engine thread: it loads the model, measures it, then takes one message after the other.
// Superseding, refusing and the status must not wait for it, so the caller's thread does them in
// Mailbox and StatusBoard.

namespace efimd::completion {

namespace {

/// Between two keystrokes of somebody who types slowly; what takes longer is a pause.
constexpr auto kTypingPause = std::chrono::milliseconds(300);
/// Until a store that had no room is asked again.
constexpr auto kStorePause = std::chrono::milliseconds(1000);
/// For handing the last pages over when the daemon ends.
constexpr auto kLastPagesMax = std::chrono::milliseconds(100);

}  // namespace

struct CompletionService::Impl {
  Impl(EngineFactory factory_, Settings settings_, std::function<void()> on_state_change)
      : settings(settings_),
        mailbox(settings_.requests_max),
        factory(std::move(factory_)),
        changed(std::move(on_state_change)) {
    thread = std::thread([this] { run(); });
  }

  ~Impl() {
    loading.request_stop();
    mailbox.close();
    thread.join();
  }

  void run() {
    const auto loaded = settings.taste ? settings.taste->load(taste) : Result<void>();
    if (settings.taste) board.set_taste(taste, loaded ? "" : loaded.error().message());
    load();
    for (;;) {
      try {
        if (current && overwrite(*current)) idle(*current);
      } catch (const std::bad_alloc&) {
        // No memory for work that nobody waits for.
      }
      std::optional<Message> message = mailbox.take();
      if (!message) break;
      try {
        std::visit([this](auto& each) { handle(each); }, *message);
      } catch (const std::bad_alloc&) {
        give_up(*message);
      }
    }
    while (current && current->overwrite_some()) {
    }
    tell_forgotten();
    if (current) current->write_last_pages(kLastPagesMax);
    save_taste();
    current.reset();  // on its own thread
  }

  /// Overwrites what was forgotten, at least a part of it before each message. False when one came before
  /// all is overwritten.
  bool overwrite(Worker& worker) {
    if (forgotten.empty()) return true;
    const std::stop_token stop = mailbox.until_next();
    while (worker.overwrite_some())
      if (stop.stop_requested()) return false;
    tell_forgotten();
    return true;
  }

  /// Nothing of what these wanted to be forgotten is left in memory.
  void tell_forgotten() {
    for (const auto& done : std::exchange(forgotten, {})) done();
  }

  /// There was no memory for it: whoever waits is answered, and the next message is served.
  void give_up(Message& message) {
    if (const auto* job = std::get_if<JobPtr>(&message); job != nullptr && *job) {
      mailbox.finished(**job);
      refuse(**job, {silence::kNoMemory, {}});
    }
    if (const auto* forgetting = std::get_if<Forgetting>(&message)) forgetting->done();
  }

  void handle(JobPtr& job) {
    if (!current && may_load_again()) load();
    if (current) return answer(*current, *job);
    mailbox.finished(*job);
    refuse(*job, *board.refusal());
  }
  void handle(DocumentKey& closed) {
    if (!current) return;
    current->close(closed);
    publish(*current);
  }
  void handle(OpenedDocument& opened) {
    if (current) current->open(opened);
  }
  void handle(Focused& focused) {
    if (current) current->focus(focused.document);
  }
  void handle(Dismissal& dismissal) {
    if (current) current->dismiss(dismissal);
  }
  void handle(IndexChange& change) {
    change.apply(index);
    if (current && !change.document) publish(*current);
  }
  void handle(HeadAnswer& answer) {
    if (current) current->show_head(answer);
  }
  void handle(Forgetting& forgetting) {
    if (!current) return forgetting.done();
    current->forget(forgetting.uris);
    publish(*current);
    forgotten.push_back(std::move(forgetting.done));
  }

  /// Background work, each piece of which ends when a message arrives. Restoring begins at once:
  /// somebody is about to type there. Then what is likely next is evaluated; noting and writing wait
  /// for a pause in typing.
  void idle(Worker& worker) {
    for (;;) {
      const std::stop_token stop = mailbox.until_next();
      follow_device(worker, settings, stop);
      while (!stop.stop_requested() && worker.restore_one(stop)) publish(worker);
      auto later = settings.background() ? worker.idle(stop) : kNever;
      board.set_pace(worker.budgets());
      publish(worker);
      if (stop.stop_requested()) return;
      if (settings.keeper) {
        if (mailbox.wait(kTypingPause)) return;
        if (!worker.write_pages(stop)) later = std::min(later, Idle::Clock::now() + kStorePause);
      }
      if (later == kNever) {
        save_taste();
        settings.on_idle();
        return rest(worker, stop);
      }
      const auto wait = std::chrono::ceil<std::chrono::milliseconds>(later - Idle::Clock::now());
      if (mailbox.wait(wait)) return;
    }
  }

  /// What could not be written is tried again after the next suggestion.
  void save_taste() {
    if (!taste.take_changed()) return;
    std::string trouble;
    if (settings.taste)
      if (const auto saved = settings.taste->save(taste); !saved) trouble = saved.error().message();
    board.set_taste(taste, std::move(trouble));
  }

  /// Nothing is left to do: after a while closed documents are dropped, then the device is given back,
  /// until the next message needs it.
  void rest(Worker& worker, const std::stop_token& stop) {
    for (;;) {
      const auto due = worker.give_back_closed(settings.closed_kept, stop);
      publish(worker);
      if (due == kNever) break;
      if (mailbox.wait(std::chrono::ceil<std::chrono::milliseconds>(due - Idle::Clock::now())))
        return;
    }
    std::chrono::seconds wait = settings.release_after;
    const bool never = wait.count() == 0;
    if (worker.engine().stands_in()) {
      wait = never ? settings.retry_after : std::min(wait, settings.retry_after);
    } else if (never) {
      return;
    }
    if (mailbox.wait(wait)) return;
    worker.release_device();
    publish(worker);
  }

  void load() {
    current = load_worker(factory, settings, {board, index, taste}, loading.get_token());
    if (changed && !loading.stop_requested()) changed();
  }

  /// Only the engine thread can say whether a model that failed is to be loaded again.
  bool decides_later(const Silence& refusal) const {
    return refusal.reason == silence::kNoModel && settings.may_load_again != nullptr;
  }

  bool may_load_again() const {
    return settings.may_load_again && !loading.stop_requested() && settings.may_load_again();
  }

  void answer(Worker& worker, Job& job) {
    Options& options = job.request.options;
    options.eagerness = taste.eagerness(language_of(job.request), options.eagerness);
    follow_device(worker, settings);
    Answer answer = worker.serve(job);
    mailbox.finished(job);
    publish(worker);
    tell_remote(worker);
    if (!answer.outcome.superseded) board.count_answer(answer.outcome.receipt);
    if (!answer.shown.empty()) board.count_shown(answer.shown);
    if (!answer.accepted.empty()) board.count_accepted(answer.accepted);
    if (!answer.silence.empty()) board.count_silence(answer.silence);
    if (answer.plan) board.add_plan(std::move(*answer.plan));
    job.done(std::move(answer.outcome));
  }

  /// Who watches the state hears when the engine elsewhere stops or begins to answer.
  void tell_remote(const Worker& worker) {
    const bool turned = worker.remote().trouble.empty() != remote_trouble.empty();
    board.set_remote(worker.remote());
    if (!turned) return;
    remote_trouble = worker.remote().trouble;
    if (changed) changed();
  }

  void publish(const Worker& worker) {
    board.set_documents(worker.documents().rows(), worker.engine());
    board.set_recall(index.usage());
  }

  void refuse(Job& job, const Silence& silence) {
    board.count_silence(silence.reason);
    Outcome outcome = outcome_without_engine(job);
    outcome.receipt.reason = silence.message();
    job.done(std::move(outcome));
  }

  /// A newer one for the same document came before its turn.
  static void supersede(Job& job) {
    Outcome outcome = outcome_without_engine(job);
    outcome.superseded = true;
    job.done(std::move(outcome));
  }

  static Outcome outcome_without_engine(const Job& job) {
    const auto waited = std::chrono::steady_clock::now() - job.request.arrived;
    Outcome outcome;
    outcome.receipt.total_ms = std::chrono::duration<double, std::milli>(waited).count();
    return outcome;
  }

  const Settings settings;
  const std::shared_ptr<InFlight> in_flight = std::make_shared<InFlight>();
  StatusBoard board;
  Mailbox mailbox;
  recall::Index index;         ///< the engine thread's
  Taste taste;                 ///< likewise
  std::string remote_trouble;  ///< likewise: as it was told last
  /// Likewise: to be called once all that was forgotten is overwritten.
  std::vector<std::function<void()>> forgotten;
  const EngineFactory factory;          ///< likewise
  const std::function<void()> changed;  ///< likewise
  std::unique_ptr<Worker> current;      ///< likewise; null: no model
  std::stop_source loading;
  std::thread thread;  ///< last: it uses all of the above
};

CompletionService::CompletionService(EngineFactory factory, Settings settings,
                                     std::function<void()> on_state_change)
    : impl_(std::make_unique<Impl>(std::move(factory), settings, std::move(on_state_change))) {}

CompletionService::~CompletionService() = default;

void CompletionService::submit(Request request, std::function<void(Outcome)> done) {
  impl_->in_flight->began();
  auto job = std::make_unique<Job>(
      std::move(request), [in_flight = impl_->in_flight, done = std::move(done)](Outcome outcome) {
        in_flight->ended();
        done(std::move(outcome));
      });
  if (const auto refusal = impl_->board.refusal(); refusal && !impl_->decides_later(*refusal))
    impl_->refuse(*job, *refusal);
  else if (!impl_->mailbox.post(job))
    impl_->refuse(*job, {silence::kQueueFull, {}});
  else if (job)
    Impl::supersede(*job);
}

void CompletionService::close(DocumentKey document) {
  impl_->mailbox.close_document(std::move(document));
}

void CompletionService::open(OpenedDocument opened) {
  static_cast<void>(impl_->mailbox.post(std::move(opened)));
}

void CompletionService::focus(DocumentKey document) {
  static_cast<void>(impl_->mailbox.post(Focused{std::move(document)}));
}

void CompletionService::dismiss(Dismissal dismissal) {
  static_cast<void>(impl_->mailbox.post(std::move(dismissal)));
}

void CompletionService::forget(std::vector<std::string> uris, std::function<void()> done) {
  if (!impl_->mailbox.post(Forgetting{std::move(uris), done})) done();
}

void CompletionService::show_head(HeadAnswer answer) {
  static_cast<void>(impl_->mailbox.post(std::move(answer)));
}

void CompletionService::change_index(std::function<void(recall::Index&)> change,
                                     std::optional<DocumentKey> document) {
  static_cast<void>(impl_->mailbox.post(IndexChange{std::move(change), std::move(document)}));
}

void CompletionService::forget_taste() {
  change_index([impl = impl_.get()](recall::Index&) {
    impl->taste.clear();
    impl->save_taste();
  });
}

std::shared_ptr<InFlight> CompletionService::in_flight() const { return impl_->in_flight; }

ServiceStatus CompletionService::status() const { return impl_->board.status(); }

}  // namespace efimd::completion
