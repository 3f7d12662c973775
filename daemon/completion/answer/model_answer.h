#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include "daemon/completion/answer/drafter.h"
#include "daemon/completion/answer/idle.h"
#include "daemon/completion/answer/recalled.h"
#include "daemon/completion/answer/turn.h"
#include "daemon/completion/budgets.h"
#include "daemon/completion/documents/suggestion.h"
#include "daemon/completion/generate/generate.h"
#include "daemon/prompt/choose.h"
#include "engine/engine.h"

namespace efimd::completion {

/// Asks the model: plan, prefill, generation. Remembers what was generated in the document.
///
/// Thread: engine. Borrows all that it is made with.
class ModelAnswer {
 public:
  struct Uses {
    engine::Engine& engine;
    Documents& documents;
    const Budgets& budgets;
    Idle& idle;
    const recall::Index* index = nullptr;  ///< for drafts; null: none but those of ask()
  };
  explicit ModelAnswer(const Uses& uses);

  /// One generation; several if the request came by hand. `draft`: text that was shown at the
  /// cursor when the model had seen less, or recall's text. It stays as far as the
  /// model would have chosen it itself.
  Or<std::vector<Generated>> ask(Turn& turn, const Draft& draft);

  /// Whether generation can go on from the end of a suggestion of which a part is typed.
  static bool can_go_on(const Turn& turn, const Suggestion& suggestion);
  /// Generates further from the end of `suggestion`, of which `typed` bytes are typed; the answer is
  /// all of it.
  Or<Generated> go_on(Turn& turn, Suggestion suggestion, std::size_t typed);

  /// Whether KV holds an anchor by now that shows more than the suggestion's did.
  bool sees_more_than(const Suggestion& suggestion, const Turn& turn) const;

  /// Generates what follows the shown item of the document used last, as if it were accepted.
  void look_ahead(const std::stop_token& stop);

 private:
  /// A prompt and the anchor that holds its KV.
  struct Prompted {
    KeptAnchor& kept;
    const prompt::Plan& plan;
  };
  Or<prompt::Candidate> plan(Turn& turn);
  Or<void> prefill(Turn& turn, KeptAnchor& kept, std::span<const engine::TokenId> tokens);
  /// evaluates the prompt and `draft` in one step. The number of drafted tokens: 0 if there was
  /// no room for them.
  Or<int> prefill_draft(Turn& turn, const Prompted& prompted,
                        std::span<const engine::TokenId> draft);
  /// Tokens of a draft that are worth their part of the prompt's step; none where a draft could
  /// change what is written.
  std::vector<engine::TokenId> drafted(const Turn& turn, const Prompted& prompted,
                                       const Draft& draft) const;
  /// What the prompt's step has the logits for.
  struct ToJudge {
    int drafted = 0;  ///< tokens at the end of what the sequence holds
    std::span<const std::string> candidates;
  };
  Or<std::vector<Generated>> generate_from(Turn& turn, const Prompted& prompted,
                                           const ToJudge& judge, Drafter& drafter);
  Drafter drafter_for(const Turn& turn);
  /// The prompt's end that is to be healed; unset if it stands as it is.
  Or<std::optional<TypedEnd>> typed_end(const Turn& turn, const Prompted& prompted);
  /// Tokens at the end of what is typed that may be healed; 0 if healing is off.
  int typed_tokens(const Request& request, const prompt::Anchor& anchor) const;
  tl::unexpected<Nothing> failed(KeptAnchor& kept, const Error& error);

  engine::Engine& engine_;
  Documents& documents_;
  const Budgets& budgets_;
  Idle& idle_;
  const recall::Index* const index_;
  DraftOdds odds_;
  /// Made with the model if healing is its rule, else when it is first wanted.
  std::optional<engine::ByteOrder> byte_order_;
};

}  // namespace efimd::completion
