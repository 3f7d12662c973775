#pragma once

#include <chrono>
#include <memory>

#include "base/error.h"
#include "daemon/completion/answer/idle.h"
#include "daemon/completion/budgets.h"
#include "daemon/completion/completion.h"
#include "daemon/completion/documents/documents.h"
#include "daemon/completion/documents/session_memory.h"
#include "daemon/completion/documents/suggestion.h"
#include "daemon/completion/fit/place.h"
#include "daemon/completion/generate/generate.h"
#include "daemon/completion/mailbox.h"
#include "daemon/completion/silence.h"
#include "daemon/prompt/choose.h"

namespace efimd::completion {

/// An answer, and under which reason the status counts its silence (empty when it is not silent).
struct Answer {
  Outcome outcome;
  std::string_view silence;
  std::optional<ServiceStatus::PlanNote> plan;  ///< where the model was asked
};

/// Where a completion for `request` stands in `snapshot`, a version of its text.
/// Borrows the snapshot.
Place place_of(const Request& request, const text::Snapshot& snapshot, std::size_t cursor);

/// Answers one request after the other: event, plan, KV, generation, fit.
///
/// Thread: engine. Never fails: what goes wrong is an answer with a reason.
class Worker {
 public:
  Worker(std::unique_ptr<engine::Engine> engine, Budgets budgets, std::size_t documents_max,
         std::shared_ptr<PageKeeper> keeper = nullptr);

  Answer serve(const Job& job);
  void close(const DocumentKey& document);
  void open(const OpenedDocument& opened);
  void focus(const DocumentKey& document);
  void dismiss(const Dismissal& dismissal);
  void forget(const std::string& uri) { memory_.forget(uri); }

  /// Idle time's work, in pieces. Restores a prompt, or a part of it when `stop` fires; false when
  /// there is none.
  bool restore_one(const std::stop_token& stop) { return memory_.restore_one(stop); }
  void note_places() { memory_.note_places(); }
  engine::WriteBehind write_behind() { return engine_->write_behind(engine::Leaving::kNo); }
  /// Evaluates what is likely next until `stop` fires (idle.h) or nothing is left; returns when
  /// there will be more to do without any message, or kNever.
  Idle::Clock::time_point idle(const std::stop_token& stop);

  void release_device() { engine_->release_device(); }

  const engine::Engine& engine() const { return *engine_; }
  const Documents& documents() const { return documents_; }
  const Budgets& budgets() const { return budgets_; }

 private:
  /// Why there is nothing to show.
  struct Nothing {
    bool superseded = false;
    Silence silence;
  };
  template <class T>
  using Or = tl::expected<T, Nothing>;

  /// One suggestion, or, asked by hand, several.
  Or<std::vector<Item>> complete(const Job& job, DocumentState& document, Receipt& receipt);
  /// The rest of what was generated before, where that is enough; else the model's answer.
  Or<std::vector<Item>> find_items(const Job& job, std::size_t cursor, DocumentState& document,
                                   Receipt& receipt);
  Or<std::vector<Item>> ask_model(const Job& job, DocumentState& document, std::size_t cursor,
                                  const Suggestion* shown, Receipt& receipt);
  void note_request(const Request& request, std::size_t cursor, DocumentState& document,
                    Receipt& receipt);
  prompt::Windows windows_for(const Options& options, const DocumentState& document) const;
  Or<prompt::Candidate> plan(const Request& request, std::size_t cursor, DocumentState& document);
  Or<void> hold(const Job& job, KeptAnchor& kept, std::span<const engine::TokenId> tokens,
                Receipt& receipt);
  Or<std::vector<Generated>> generate_text(const Job& job, DocumentState& document,
                                           KeptAnchor& kept, const prompt::Plan& plan,
                                           const Place& place, std::optional<Generated> begun,
                                           Receipt& receipt);
  /// Fails with why the first has nothing to show.
  Or<std::vector<Item>> shape_all(const Request& request, const DocumentState& document,
                                  const Place& place, const std::vector<Generated>& generated,
                                  Receipt& receipt) const;
  Or<Item> shape(const Request& request, const Place& place, const Generated& generated,
                 std::optional<double>& confidence) const;

  // worker_suggestions.cpp: what was generated before.

  /// The suggestion that goes on with the text, and how much of it is typed: of several the one that
  /// begins nearest to the cursor.
  struct Known {
    Suggestion* suggestion = nullptr;
    std::size_t typed = 0;
  };
  Known known_suggestion(const Request& request, std::size_t cursor, DocumentState& document) const;
  /// Whether an anchor that shows more than the suggestion's did is in KV by now.
  bool fuller_is_whole(const DocumentState& document, const Suggestion& suggestion,
                       const text::Snapshot& snapshot, std::size_t cursor) const;
  Or<std::vector<Item>> answer_from(const Known& known, const Request& request, std::size_t cursor,
                                    DocumentState& document, Receipt& receipt);
  /// Whether generation can go on where the suggestion's ended.
  bool can_go_on(const Known& known, const Request& request, const DocumentState& document) const;
  Or<std::vector<Item>> go_on(const Job& job, const Known& known, std::size_t cursor,
                              DocumentState& document, Receipt& receipt);
  /// holds the prompt and as much of `draft` behind it as the model itself would have chosen.
  Or<Generated> hold_draft(const Job& job, KeptAnchor& kept, const prompt::Plan& plan,
                           std::string_view draft, Receipt& receipt);
  void remember(DocumentState& document, Suggestion suggestion) const;
  /// Generates what comes behind the item that is shown, as if it were accepted.
  void look_ahead(const std::stop_token& stop);

  tl::unexpected<Nothing> failed(KeptAnchor& kept, const Error& error);

  /// Tokens at the end of what is typed that may be healed; 0 where healing is off.
  int typed_tokens(const Request& request, const prompt::Anchor& anchor) const;

  std::unique_ptr<engine::Engine> engine_;
  std::optional<engine::ByteOrder>
      byte_order_;  ///< made with the model, or when healing is first wanted
  Budgets budgets_;
  Documents documents_;
  SessionMemory memory_;
  std::optional<ServiceStatus::PlanNote> planned_;  ///< of the request at hand
  Idle idle_{*engine_, documents_, budgets_};
};

}  // namespace efimd::completion
