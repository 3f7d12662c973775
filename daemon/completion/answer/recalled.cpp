#include "daemon/completion/answer/recalled.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/completion/fit/fit.h"

namespace efimd::completion {

namespace {

/// A draft's bytes: more than the model judges in one step is never used.
constexpr std::size_t kDraftBytesMax = 96;

recall::Where where_of(const TextHome& home) { return {home.project, home.path}; }

/// Text that was deleted is offered while the user types, not as an answer to deleting it.
bool is_typing(Event event) {
  return event == Event::kType || event == Event::kNewline || event == Event::kAccept;
}

/// Below this a model's text at the end of a finished line is not shown.
constexpr double kFinishedConfidenceMin = 0.5;

/// The last boundary whose chance is at least `least`.
std::size_t bytes_with(const recall::Candidate& candidate, double least) {
  std::size_t bytes = 0;
  for (const recall::Boundary& boundary : candidate.boundaries)
    if (boundary.chance >= least) bytes = boundary.bytes;
  return bytes;
}

/// How much of a candidate is shown: what recall finds worth it, less of it or more by eagerness.
std::size_t shown_bytes(const recall::Candidate& candidate, Eagerness eagerness) {
  constexpr double kSureChance = 0.6, kFairChance = 0.25;
  if (eagerness == Eagerness::kLow)
    return std::min(bytes_with(candidate, kSureChance), candidate.shown);
  if (eagerness == Eagerness::kHigh)
    return std::max(bytes_with(candidate, kFairChance), candidate.shown);
  return candidate.shown;
}

/// Characters of the first `bytes` that the user may expect to be spared: each boundary's with its
/// own chance.
double expected_gain(const recall::Candidate& candidate, std::size_t bytes) {
  double gain = 0;
  std::size_t begin = 0;
  for (const recall::Boundary& boundary : candidate.boundaries) {
    if (boundary.bytes > bytes) break;
    gain += boundary.chance * static_cast<double>(boundary.bytes - begin);
    begin = boundary.bytes;
  }
  return gain;
}

double chance_at(const recall::Candidate& candidate, std::size_t bytes) {
  double chance = 0;
  for (const recall::Boundary& boundary : candidate.boundaries)
    if (boundary.bytes <= bytes) chance = boundary.chance;
  return chance;
}

std::optional<Item> fitted(const recall::Candidate& candidate, std::size_t bytes,
                           const Turn& turn) {
  Fitted shown = fit(std::string_view(candidate.text).substr(0, bytes), turn.context());
  if (shown.text.empty()) return std::nullopt;
  return Item{std::move(shown.text), turn.cursor, shown.replace_end};
}

}  // namespace

void follow(recall::Index& index, const Turn& turn) {
  const TextHome& home = turn.request().home;
  if (home.path.empty()) return;
  index.set_document(where_of(home), turn.request().snapshot);
  const std::optional<LastRequest>& last = turn.document.last;
  if (turn.receipt.event != Event::kAccept || !last || !last->shown) return;
  const std::size_t begin = last->shown->begin;
  if (begin < turn.cursor)
    index.accept(where_of(home), turn.snapshot().bytes(), begin,
                 turn.snapshot().bytes().substr(begin, turn.cursor - begin));
}

Recalled propose(const recall::Index& index, const Turn& turn) {
  Recalled recalled;
  const Request& request = turn.request();
  if (request.home.path.empty() || !request.options.recall) return recalled;
  const recall::Query query{where_of(request.home), turn.snapshot().bytes(), turn.cursor};
  for (const recall::Candidate& candidate : index.find(query)) {
    if (recalled.draft.empty() && !candidate.boundaries.empty()) {
      recalled.draft = candidate.text.substr(0, kDraftBytesMax);
      recalled.draft_chance = candidate.boundaries.front().chance;
    }
    if (candidate.source == recall::Source::kDeleted && !is_typing(turn.receipt.event)) continue;
    const std::size_t bytes = shown_bytes(candidate, request.options.eagerness);
    if (bytes == 0) continue;
    recalled.item = fitted(candidate, bytes, turn);
    if (!recalled.item) continue;
    recalled.rejected =
        turn.document.rejections.turned_down(turn.snapshot(), turn.cursor, recalled.item->text);
    if (recalled.rejected) {
      recalled.item.reset();
      break;
    }
    recalled.chance = chance_at(candidate, bytes);
    recalled.gain = expected_gain(candidate, bytes);
    break;
  }
  return recalled;
}

bool is_better(const Recalled& recalled, const std::vector<Item>& written,
               std::optional<double> confidence) {
  if (!recalled.item) return false;
  return recalled.gain >= confidence.value_or(0) * static_cast<double>(written.front().text.size());
}

bool is_welcome(const Turn& turn, std::optional<double> confidence) {
  if (!turn.request().options.recall || turn.request().options.confidence) return true;
  return recall::place_at(turn.snapshot().bytes(), turn.cursor) != recall::Place::kFinished ||
         confidence.value_or(0) >= kFinishedConfidenceMin;
}

}  // namespace efimd::completion
