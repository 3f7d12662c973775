#pragma once

#include <chrono>
#include <memory>

#include "base/error.h"
#include "daemon/completion/budgets.h"
#include "daemon/completion/completion.h"
#include "daemon/completion/documents.h"
#include "daemon/completion/generate.h"
#include "daemon/completion/mailbox.h"
#include "daemon/completion/session_memory.h"
#include "daemon/completion/silence.h"
#include "daemon/prompt/choose.h"

namespace efimd::completion {

/// An answer, and under which reason the status counts its silence (empty when it is not silent).
struct Answer {
  Outcome outcome;
  std::string_view silence;
};

/// Answers one request after the other: event, plan, KV, generation, fit.
///
/// Thread: engine. Never fails: what goes wrong is an answer with a reason.
class Worker {
 public:
  Worker(std::unique_ptr<engine::Engine> engine, Budgets budgets, std::size_t documents_max,
         std::shared_ptr<PageKeeper> keeper = nullptr, Treatment treatment = {});

  Answer serve(const Job& job);
  void close(const DocumentKey& document);
  void open(const OpenedDocument& opened) { memory_.open(opened); }
  void forget(const std::string& uri) { memory_.forget(uri); }

  /// Idle time's work, in pieces. Restores a prompt, or a part of it when `stop` fires; false when
  /// there is none.
  bool restore_one(const std::stop_token& stop) { return memory_.restore_one(stop); }
  void note_places() { memory_.note_places(); }
  engine::WriteBehind write_behind() { return engine_->write_behind(); }

  const engine::Engine& engine() const { return *engine_; }
  const Documents& documents() const { return documents_; }

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
  Or<prompt::Candidate> plan(const Request& request, std::size_t cursor,
                             DocumentState& document) const;
  Or<void> hold(const Job& job, engine::SourceId source, KeptAnchor& kept, const prompt::Plan& plan,
                Receipt& receipt);
  Or<std::vector<Generated>> generate_text(const Job& job, KeptAnchor& kept, const prompt::Plan& plan,
                              Receipt& receipt);
  /// Fails with why the first has nothing to show.
  Or<std::vector<Item>> shape_all(const Request& request, const DocumentState& document,
                                  const prompt::Plan& plan, const std::vector<Generated>& generated,
                                  Receipt& receipt) const;
  Or<Item> shape(const Request& request, const prompt::Plan& plan,
                 const Generated& generated, std::optional<double>& confidence) const;
  tl::unexpected<Nothing> failed(KeptAnchor& kept, const Error& error);

  /// Tokens at the end of what is typed that may be healed; 0 where healing is off.
  int typed_tokens(const Request& request, const prompt::Anchor& anchor) const;

  std::unique_ptr<engine::Engine> engine_;
  std::optional<engine::ByteOrder>
      byte_order_;  ///< made with the model, or when healing is first wanted
  Budgets budgets_;
  Documents documents_;
  SessionMemory memory_;
  const Treatment treatment_;
};

}  // namespace efimd::completion
