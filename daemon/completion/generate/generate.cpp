#include "daemon/completion/generate/generate.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>

#include "daemon/completion/generate/generation.h"

namespace efimd::completion {

namespace {

using engine::TokenId;

/// Evaluates the items in one step; false where no KV memory is left for them.
Result<bool> step(const GenerationSetting& setting, std::span<const engine::BatchItem> items) {
  for (;;) {
    const Result<void> stepped = setting.engine.step(items);
    if (stepped) return true;
    if (stepped.error().fault != Fault::kWindowFull) return tl::unexpected(stepped.error());
    if (!setting.make_room()) return false;
  }
}

/// One generation of several, on a sequence of its own but for the first.
struct Candidate {
  Candidate(const GenerationSetting& setting, engine::SequenceId sequence_, const Options& options,
            StopRules& rules)
      : sequence(sequence_), generation(setting, sequence_, options, rules) {}
  engine::SequenceId sequence;
  Generation generation;
};

/// The forks, closed at the end.
class Candidates {
 public:
  Candidates(const GenerationSetting& setting, const Options& options, StopRules& rules)
      : setting_(setting), options_(options), unfed_(rules) {
    candidates_.emplace_back(setting, setting.sequence, options, rules);
  }
  ~Candidates() {
    for (std::size_t i = 1; i < candidates_.size(); ++i)
      setting_.engine.close_sequence(candidates_[i].sequence);
  }
  Candidates(const Candidates&) = delete;
  Candidates& operator=(const Candidates&) = delete;

  /// The likeliest, and beside it what else could be begun with; fewer where there is no KV memory.
  Result<void> begin(int count) {
    Generation& first = candidates_.front().generation;
    if (count > 1) first.keep_alternatives();
    if (auto begun = first.begin(); !begun) return begun;
    for (const Generation::Choice& choice : first.alternatives(count - 1)) {
      const auto fork = setting_.engine.fork(setting_.sequence);
      if (!fork) break;
      candidates_.emplace_back(setting_, *fork, options_, rules_.emplace_back(unfed_));
      candidates_.back().generation.begin_beside(first, choice);
    }
    return {};
  }

  /// One token for each that has not ended; false when all have.
  Result<bool> go_on() {
    std::vector<engine::BatchItem> items;
    std::vector<Candidate*> going;
    for (Candidate& candidate : candidates_) {
      const std::span<const TokenId> tokens = candidate.generation.pending();
      if (tokens.empty()) continue;
      items.push_back({.sequence = candidate.sequence,
                       .tokens = tokens,
                       .logits_rows = static_cast<int>(tokens.size())});
      going.push_back(&candidate);
    }
    if (items.empty()) return false;
    const auto begin = std::chrono::steady_clock::now();
    const Result<bool> stepped =
        items[0].tokens.size() > 1 ? step_with_draft(items[0]) : step_with_piggyback(items);
    if (!stepped) return tl::unexpected(stepped.error());
    for (Candidate* candidate : going) {
      if (!*stepped) {
        candidate->generation.end_for(End::kNoRoom);
      } else if (auto gone = candidate->generation.go_on(); !gone) {
        return tl::unexpected(gone.error());
      }
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    if (*stepped && going.size() == 1) going.front()->generation.stepped(took.count());
    return true;
  }

  std::vector<Generated> finish() {
    std::vector<Generated> all;
    for (Candidate& candidate : candidates_) all.push_back(candidate.generation.finish());
    return all;
  }

 private:
  /// Only the first generation has drafts, and only if it is alone. A draft that finds no room, or
  /// fails, is left out.
  Result<bool> step_with_draft(engine::BatchItem item) {
    if (setting_.engine.step({&item, 1})) return true;
    candidates_.front().generation.drop_draft();
    item.tokens = item.tokens.first(1);
    item.logits_rows = 1;
    return step(setting_, {&item, 1});
  }

  /// A piggybacked item that finds no room, or fails, is left out.
  Result<bool> step_with_piggyback(std::vector<engine::BatchItem>& items) {
    if (setting_.piggyback && items.size() == 1)
      if (const engine::BatchItem item = setting_.piggyback(); !item.tokens.empty()) {
        items.push_back(item);
        if (setting_.engine.step(items)) return true;
        items.pop_back();
      }
    return step(setting_, items);
  }

  const GenerationSetting& setting_;
  const Options& options_;
  const StopRules unfed_;
  std::deque<StopRules> rules_;  ///< of the forks; generations refer to them: they must not move
  std::deque<Candidate> candidates_;
};

}  // namespace

Result<Generated> generate(const GenerationSetting& setting, const Options& options,
                           StopRules& rules) {
  auto all = generate_several(setting, options, rules, 1);
  if (!all) return tl::unexpected(std::move(all).error());
  return std::move(all->front());
}

Result<std::vector<Generated>> generate_several(const GenerationSetting& setting,
                                                const Options& options, StopRules& rules,
                                                int count) {
  Candidates candidates(setting, options, rules);
  if (auto begun = candidates.begin(count); !begun) return tl::unexpected(begun.error());
  for (Result<bool> going = true; *going;) {
    going = candidates.go_on();
    if (!going) return tl::unexpected(going.error());
  }
  return candidates.finish();
}

}  // namespace efimd::completion
