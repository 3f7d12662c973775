#include "daemon/completion/answer/recalled.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/completion/answer/judged_chance.h"
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

/// The candidate with its chances as they are for this user.
recall::Candidate adapted(recall::Candidate candidate, const Turn& turn) {
  if (turn.taste == nullptr) return candidate;
  const std::string language = language_of(turn.request());
  for (recall::Boundary& boundary : candidate.boundaries)
    boundary.chance = turn.taste->adapted(language, boundary.chance);
  cut_anew(candidate);
  return candidate;
}

/// Makes the candidate what is shown, if it is worth it.
void take(Recalled& recalled, const recall::Candidate& found, const Turn& turn) {
  const recall::Candidate candidate = adapted(found, turn);
  const std::size_t bytes = shown_bytes(candidate, turn.request().options.eagerness);
  if (bytes == 0) return;
  recalled.item = fitted(candidate, bytes, turn);
  if (!recalled.item) return;
  recalled.rejected =
      turn.document.rejections.turned_down(turn.snapshot(), turn.cursor, recalled.item->text);
  if (recalled.rejected) return recalled.item.reset();
  recalled.chance = chance_at(candidate, bytes);
  recalled.gain = expected_gain(candidate, bytes);
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
  for (recall::Candidate& candidate : index.find(query)) {
    if (candidate.source == recall::Source::kDeleted && !is_typing(turn.receipt.event)) continue;
    if (!recalled.item && !recalled.rejected) take(recalled, candidate, turn);
    if (recalled.drafted || candidate.boundaries.empty()) continue;
    recalled.draft = candidate.text.substr(0, kDraftBytesMax);
    recalled.draft_chance = candidate.boundaries.front().chance;
    recalled.drafted = std::move(candidate);
  }
  return recalled;
}

Recalled with_model(const Recalled& recalled, const Turn& turn) {
  if (!recalled.drafted || turn.judged.empty() || recalled.rejected) return recalled;
  Recalled judged = recalled;
  judged.drafted = with_model(*recalled.drafted, turn.judged);
  // Another candidate than the drafted one stays as it was.
  const bool same = !recalled.item || recalled.drafted->text.starts_with(recalled.item->text);
  if (!same) return recalled;
  judged.item.reset();
  judged.chance = judged.gain = 0;
  take(judged, *judged.drafted, turn);
  return judged;
}

double written_gain(const Turn& turn, const std::vector<Item>& written) {
  const std::size_t bytes = written.front().text.size();
  const double share = written_share(written_features(turn.receipt.confidence.value_or(0), bytes),
                                     recall::place_at(turn.snapshot().bytes(), turn.cursor));
  return share * static_cast<double>(bytes);
}

bool is_better(const Recalled& recalled, double written_gain) {
  return recalled.item && recalled.gain >= written_gain;
}

bool is_welcome(const Turn& turn, std::optional<double> confidence) {
  if (!turn.request().options.recall || turn.request().options.confidence) return true;
  return recall::place_at(turn.snapshot().bytes(), turn.cursor) != recall::Place::kFinished ||
         confidence.value_or(0) >= kFinishedConfidenceMin;
}

}  // namespace efimd::completion
