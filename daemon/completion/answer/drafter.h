#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/answer/turn.h"
#include "daemon/completion/generate/generate.h"
#include "daemon/prompt/choose.h"
#include "daemon/recall/index.h"
#include "engine/engine.h"

namespace efimd::completion {

/// How often the model chose what was drafted, and what drafts cost: learned from every draft, older
/// ones counting less. So a device, a model or a text where drafts do not pay soon has few.
///
/// Thread: engine.
class DraftOdds {
 public:
  /// That the first token of a draft is chosen, if recall gives its text this chance.
  double first(double chance) const;
  /// That a further one is, if all before it were.
  double further() const { return further_.rate(); }
  void judged(double chance, int drafted, int accepted);
  /// The same of a draft in the prompt's own step, whose chance is a calibrated one; 1: it is no
  /// guess, and nothing is learned.
  void judged_with_prompt(double chance, std::span<const engine::TokenId> draft,
                          std::span<const prompt::CoveredToken> generated);

  /// A step with this many drafted tokens took `ms`. The device's table does not know what choosing
  /// each of them costs.
  void stepped(int drafted, double ms);
  /// Of a step without a draft, and what so many drafted tokens add to it; by the table until they
  /// are known.
  double step_ms(const prompt::StepCosts& costs) const { return step_ms_.value_or(costs.ms(1)); }
  double added_ms(const prompt::StepCosts& costs, std::size_t drafted) const;

  /// How many tokens of a draft are worth their part of a step, 0 to `most`: the steps that they are
  /// expected to spare, less what the step costs more.
  std::size_t worthwhile(const prompt::StepCosts& costs, double first, std::size_t most) const;
  std::size_t worthwhile_with_prompt(const prompt::StepCosts& costs, double chance,
                                     std::size_t most) const;

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
  Worth worth_of(const prompt::StepCosts& costs, double first, std::size_t most) const;

  struct Rate {
    double accepted, judged;
    double rate() const { return accepted / judged; }
    void add(bool is_accepted);
  };
  static constexpr std::size_t kBuckets = 4;
  using Rates = std::array<Rate, kBuckets>;
  void learn(Rates& rates, double chance, int drafted, int accepted);
  /// What the bundled model does in the training packages, as if it were some tokens' evidence.
  Rates first_ = {{{2, 10}, {4, 10}, {6, 10}, {8, 10}}};
  Rates first_of_prompt_ = {{{1.25, 10}, {3.75, 10}, {6.25, 10}, {8.75, 10}}};
  Rate further_ = {17, 20};
  double cost_ms_ = 0.15;
  std::optional<double> gain_ms_;  ///< unset: nothing was looked up yet
  std::optional<double> step_ms_, token_ms_;
  /// By the number of drafted tokens: kernels take some tokens together, so costs grow in stairs.
  std::array<std::optional<double>, engine::Engine::kLogitsRowsMax> added_ms_ = {};
  int skipped_ = 0;
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

  /// What may follow the cursor. The prompt's own step judges the beginning of it.
  void expect(std::string text);

  std::vector<engine::TokenId> propose(std::string_view written, std::size_t most) override;
  void stepped(int drafted, int accepted, double ms) override;

 private:
  std::string_view expected_after(std::string_view written) const;
  bool look_up(std::string_view written, std::size_t most);

  const Uses uses_;
  const Turn& turn_;
  std::string expected_;  ///< after the first from_ bytes of what is written
  std::size_t from_ = 0;
  double chance_ = 1;
  bool is_begun_ = false;  ///< some of expected_ was written already
  double look_up_ms_ = 0;  ///< of the look-up whose draft is not judged yet
  int misses_ = 0;         ///< look-ups in a row that spared nothing
  int skip_ = 0;           ///< tokens until the next look-up
};

}  // namespace efimd::completion
