#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/completion/answer/idle.h"
#include "daemon/completion/answer/model_answer.h"
#include "daemon/completion/answer/open_texts.h"
#include "daemon/completion/answer/recalled.h"
#include "daemon/completion/answer/turn.h"
#include "daemon/completion/budgets.h"
#include "daemon/completion/documents/documents.h"
#include "daemon/completion/documents/elsewhere.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/completion/documents/suggestion.h"
#include "daemon/completion/mailbox.h"
#include "daemon/completion/remote/remote_answer.h"
#include "daemon/completion/request.h"
#include "daemon/completion/status.h"

namespace efimd::completion {

/// An answer, and the reason under which the status counts its silence (empty if it is not silent).
struct Answer {
  Outcome outcome;
  std::string_view silence;
  std::optional<ServiceStatus::PlanNote> plan;  ///< set if the model was asked
  std::string shown = {};     ///< source of the item, if it was not on the screen already
  std::string accepted = {};  ///< source of the suggestion that the user took; empty: none
};

/// Answers one request after another: event, known suggestions, the model, fit.
///
/// Thread: engine. Never fails: a failure is an answer with a reason.
class Worker {
 public:
  struct Settings {
    Budgets budgets;
    std::size_t documents_max = 64;
    recall::Index* index = nullptr;  ///< outlives the worker; null: nothing is recalled
    std::shared_ptr<PageKeeper> keeper = nullptr;  ///< null: nothing is stored
    Taste* taste = nullptr;  ///< outlives the worker; null: nothing is learned
    RemoteSettings remote = {};
    std::function<void(HeadQuestion)> ask_head = nullptr;  ///< null: no other files are shown
    bool shows_edits = false;                              ///< of other files (A-14)
  };
  Worker(std::unique_ptr<engine::Engine> engine, Settings settings);

  Answer serve(const Job& job);
  void close(const DocumentKey& document);
  void open(const OpenedDocument& opened);
  void focus(const DocumentKey& document);
  void dismiss(const Dismissal& dismissal);
  void show_head(const HeadAnswer& answer);
  void forget(std::span<const std::string> uris) { memory_.forget(uris); }
  /// A part of what was forgotten; false once it is all overwritten.
  bool overwrite_some() { return engine_->overwrite_some(); }

  /// Idle time's work, in pieces. Restores a prompt, or a part of it when `stop` fires; false when
  /// there is none.
  bool restore_one(const std::stop_token& stop) { return memory_.restore_one(stop); }
  bool write_pages(const std::stop_token& stop) { return memory_.write_pages(stop); }
  void write_last_pages(std::chrono::milliseconds time) { memory_.write_last_pages(time); }
  Idle::Clock::time_point give_back_closed(std::chrono::milliseconds kept,
                                           const std::stop_token& stop) {
    return memory_.give_back_closed(kept, stop);
  }
  /// Evaluates what is likely next until `stop` fires (idle.h) or nothing is left; returns when
  /// there will be more to do without any message, or kNever.
  Idle::Clock::time_point idle(const std::stop_token& stop);

  void release_device() { engine_->release_device(); }

  const engine::Engine& engine() const { return *engine_; }
  engine::Engine& engine() { return *engine_; }
  const Documents& documents() const { return documents_; }
  const Budgets& budgets() const { return budgets_; }
  /// Whether another device has taken over since the budgets were measured, or the same has other room.
  bool has_moved() const { return place() != measured_on_; }
  /// Those of the device that is in use now.
  void set_budgets(Budgets budgets) {
    budgets_ = std::move(budgets);
    measured_on_ = place();
  }
  /// The state of the engine elsewhere; empty if there is none.
  ServiceStatus::Remote remote() const {
    return remote_ ? remote_->state() : ServiceStatus::Remote{};
  }

 private:
  /// One suggestion; several if the user asked by hand.
  Or<std::vector<Item>> complete(Turn& turn);
  /// The rest of an earlier suggestion, if that is enough; else the model's answer.
  Or<std::vector<Item>> find_items(Turn& turn, const Recalled& recalled);
  Or<std::vector<Item>> ask_model(Turn& turn, const Draft& draft = {});
  /// The model's text or the user's own, whichever is likelier to help.
  Or<std::vector<Item>> better_of(Turn& turn, Or<std::vector<Item>> written,
                                  const Recalled& recalled) const;
  Or<std::vector<Item>> answer_from(Turn& turn, const KnownSuggestion& known);
  void note_request(Turn& turn);
  /// Asks what the documents' prompts show of other files, for texts that were not asked for yet.
  void ask_heads();
  void ask_head(const DocumentKey& document, DocumentState& state);
  /// What the user's text says: what became of the suggestion before, and what recall may offer.
  void learn(Turn& turn);
  Answer answer_of(Turn&& turn, Or<std::vector<Item>> items) const;
  prompt::Windows windows_for(const Options& options, const DocumentState& document) const;

  std::unique_ptr<engine::Engine> engine_;
  Budgets budgets_;
  using Place = std::pair<std::string, int>;
  Place place() const { return {engine_->device_name(), engine_->window_tokens()}; }
  Place measured_on_ = place();
  Documents documents_;
  SessionMemory memory_;
  recall::Index* const index_;
  OpenTexts texts_;
  Taste* const taste_;
  std::function<void(HeadQuestion)> ask_head_;
  std::optional<Elsewhere> elsewhere_;  ///< unset: prompts show no other edits
  Idle idle_{*engine_, documents_, budgets_};
  std::optional<RemoteAnswer> remote_;
  ModelAnswer model_{{*engine_, documents_, budgets_, idle_, index_}};
};

}  // namespace efimd::completion
