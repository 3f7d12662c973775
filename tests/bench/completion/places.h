#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/completion/bench_service.h"
#include "tests/recall/projects.h"

namespace efimd::bench {

/// What was suggested at cursors of one kind, beside what the file says there.
struct PlacesTally {
  std::size_t cursors = 0;
  std::size_t shown = 0;
  std::size_t exact = 0;          ///< what is shown is the rest of the line
  std::size_t begins = 0;         ///< its first word or sign is right
  std::size_t wrong = 0;          ///< its first character is wrong
  std::size_t saved = 0;          ///< characters that are right, from the first on
  std::size_t chars = 0;          ///< characters of all rests
  std::size_t further = 0;        ///< lines shown under the first one
  std::size_t further_right = 0;  ///< of these, right like all before them
  std::size_t from_recall = 0;
  std::size_t generated = 0;  ///< tokens
  std::size_t drafted = 0;    ///< tokens
  std::size_t accepted = 0;   ///< of the drafted ones
  std::vector<double> ms;     ///< of each answer

  void add(const PlacesTally& other);
};
using PlacesTallies = std::array<PlacesTally, recall_places::kKinds>;

struct PlacesSetup {
  std::size_t count = 20;  ///< of each kind, in each project
  std::size_t seed = 1;
  bool above =
      false;  ///< only the text above the cursor is there, as in a file that is being written
  bool alone = false;   ///< without recall only: what the model is worth
  std::string dump;     ///< a file for training/fit_recall.py; empty: none
  bool drafts = false;  ///< measure what drafts spare, not what is suggested
};

enum class Asked { kWithout, kWith, kRecallAlone };

/// Asks for completions at cursors of a project whose own line was taken away: the model without
/// recall, both, or recall without the model. The project's files are indexed before; the open file
/// stands for its own.
PlacesTallies measure_places(BenchService& bench, const recall_places::Project& project,
                             const PlacesSetup& setup, Asked asked);

/// What generating took without drafts and with them, at the same cursors: of the texts that are
/// kDraftedTokensMin tokens and longer. Each cursor is asked once before, so that both find the same
/// KV; then kDraftRounds times, with one and the other first by turns.
struct DraftPairs {
  std::size_t texts = 0;
  std::size_t tokens = 0;  ///< the same in both
  std::size_t steps_without = 0, steps_with = 0;
  std::size_t drafted = 0, accepted = 0;
  std::size_t differing = 0;  ///< cursors where not the same was generated: none, if all is well
  std::size_t unlike = 0;     ///< cursors left out: idle time made a fuller view between the two
  std::vector<double> ms_without, ms_with;  ///< medians, in pairs
  std::vector<double> ms_candidates;        ///< what recall's candidates take, in both
};
inline constexpr int kDraftedTokensMin = 8;
inline constexpr int kDraftRounds = 5;

void measure_drafts(BenchService& bench, const recall_places::Project& project,
                    const PlacesSetup& setup, DraftPairs& pairs);

/// Writes what training/fit_recall.py --judged reads: at cursors of training packages, how likely
/// recall and the model find the best candidate, and how right the model's own text is.
Result<void> dump_places(const service::Paths& paths,
                         const std::vector<recall_places::Project>& projects,
                         const PlacesSetup& setup);

/// What the file says at a cursor: the rest of its line, and the lines under it if they were taken
/// away, too.
struct Truth {
  std::string_view line, below = {};
};

/// One answer's part of a tally.
void count_place(PlacesTally& tally, const Truth& truth, const completion::Outcome& outcome);

}  // namespace efimd::bench
