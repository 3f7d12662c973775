#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/answer/draft_chance.h"
#include "daemon/completion/answer/turn.h"
#include "daemon/completion/generate/generate.h"
#include "daemon/prompt/choose.h"
#include "daemon/recall/index.h"
#include "engine/engine.h"

namespace efimd::completion {

/// How often the model chooses what is drafted, and what drafts cost. The fitted chances
/// (draft_chance.h) are of the bundled model. What is learned from every draft, older ones counting
/// less, corrects them. So a device, a model or a text where drafts do not pay soon has few.
///
/// Thread: engine.
class DraftOdds {
 public:
  /// That the token `at` places behind `position` of a draft is chosen, if those before it were, in a
  /// step that begins at `position`.
  double chance(const DraftEvidence& evidence, std::size_t position, std::size_t at = 0) const;
  /// `drafted` tokens from `position` on were judged in one step.
  void judged(const DraftEvidence& evidence, std::size_t position, int drafted, int accepted);
  /// The same of a draft that was made with the prompt, whose beginning is right with this chance; 1:
  /// it is no guess, and nothing is learned.
  void judged(double chance, std::size_t position, int drafted, int accepted);
  /// The same in the prompt's own step.
  void judged_with_prompt(double chance, std::span<const engine::TokenId> draft,
                          std::span<const prompt::CoveredToken> generated);

  /// A step with this many drafted tokens took `ms`. The device's table does not know what choosing
  /// each of them costs.
  void stepped(int drafted, double ms);
  /// Of a step without a draft, and what so many drafted tokens add to it; by the table until they
  /// are known.
  double step_ms(const prompt::StepCosts& costs) const { return step_ms_.value_or(costs.ms(1)); }
  double added_ms(const prompt::StepCosts& costs, std::size_t drafted) const;

  /// How many tokens of a draft are worth their part of a step, 0 to `most`. They begin at `position`
  /// of it. It is the steps that they are expected to spare, less what the step costs more.
  std::size_t worthwhile(const prompt::StepCosts& costs, const DraftEvidence& evidence,
                         std::size_t position, std::size_t most) const;
  std::size_t worthwhile_with_prompt(const prompt::StepCosts& costs, double chance,
                                     std::size_t position, std::size_t most) const;

  /// Whether a draft that is surely right would be worth its part of a step. Where it was not for a
  /// while, what tokens add is learned anew: the first steps with drafts may have been held up.
  bool can_pay(const prompt::StepCosts& costs, std::size_t most);
  /// Whether looking for a draft of at most `most` tokens is expected to bring more than it costs.
  /// Seldom true where it is not, because what is never tried is never learned.
  bool is_look_up_worthwhile(const prompt::StepCosts& costs, std::size_t most);
  /// A look-up took `ms`; the steps that it spared were worth `gain_ms`, which may be negative.
  void looked_up(double ms, double gain_ms);

 private:
  struct Worth {
    std::size_t tokens = 0;
    double gain_ms = 0;
  };
  template <class Chance>  ///< of a token by its place in the step
  Worth worth_of(const prompt::StepCosts& costs, const Chance& chance, std::size_t most) const;

  /// Tokens that were accepted, beside those that the fitted chances let expect.
  struct Correction {
    double accepted = 20, expected = 20;
    double of(double chance) const;
    void add(bool is_accepted, double chance);
  };
  double look_up_gain_ms(const prompt::StepCosts& costs, const DraftEvidence& evidence,
                         std::size_t most) const;
  template <class Chance>  ///< fitted, of a token by its place in the step
  static void learn(Correction& correction, const Chance& chance, int drafted, int accepted);
  /// For drafts from their beginning on, and for the rest of one whose beginning was right. The model
  /// ends within such a rest more often than its chances say.
  using Corrections = std::array<Correction, 2>;
  static std::size_t which(std::size_t position) { return position > 0 ? 1 : 0; }
  Corrections looked_up_, of_prompt_;
  double cost_ms_ = 0.15;
  std::optional<double> gain_ms_;  ///< unset: nothing was looked up yet
  std::optional<double> step_ms_, token_ms_;
  /// By the number of drafted tokens: kernels take some tokens together, so costs grow in stairs.
  struct Added {
    double ms = 0;
    int steps = 0;  ///< that it was learned of
  };
  std::array<Added, engine::Engine::kLogitsRowsMax> added_ms_ = {};
  int skipped_ = 0;
  int unpaid_ = 0;  ///< in a row, of can_pay()
};

/// Drafts from recall: as long as the model writes what is expected, the rest of that; then
/// what the user's own text says after what the model has written.
///
/// Thread: engine. Borrows all that it is made with.
class Drafter : public DraftSource {
 public:
  struct Uses {
    const recall::Index* index;  ///< null: only what is expected is drafted
    const engine::Tokenizer& tokenizer;
    const prompt::StepCosts& costs;
    DraftOdds& odds;
    bool learns_costs = true;  ///< false: the table's costs are meant to count
  };
  Drafter(const Uses& uses, const Turn& turn) : uses_(uses), turn_(turn) {}

  /// What may follow the cursor, with this chance. The prompt's own step judges the first `drafted`
  /// tokens of it.
  void expect(std::string text, double chance, std::size_t drafted);

  std::vector<engine::TokenId> propose(std::string_view written, std::size_t most) override;
  void stepped(int drafted, int accepted, double ms) override;

 private:
  std::string_view expected_after(std::string_view written) const;
  bool look_up(std::string_view written, std::size_t most);

  const Uses uses_;
  const Turn& turn_;
  std::string expected_;  ///< after the first from_ bytes of what is written
  std::size_t from_ = 0;
  std::optional<DraftEvidence> evidence_;  ///< of expected_; unset: it is the prompt's
  double chance_ = 1;                      ///< of the prompt's draft
  std::size_t position_ = 0;               ///< of the next token that is drafted of expected_
  double look_up_ms_ = 0;                  ///< of the look-up whose draft is not judged yet
  int misses_ = 0;                         ///< look-ups in a row that spared nothing
  int skip_ = 0;                           ///< tokens until the next look-up
};

}  // namespace efimd::completion
