#include "daemon/completion/answer/recalled.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "daemon/completion/answer/judged_chance.h"
#include "daemon/completion/answer/open_texts.h"
#include "daemon/completion/fit/fit.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/recall/chance.h"
#include "daemon/recall/vote.h"

namespace efimd::completion {

namespace {

/// A draft's bytes: more than the model judges in one step is never used.
constexpr std::size_t kJudgedBytesMax = 96;

/// Text that was deleted is offered while the user types, not as an answer to deleting it.
bool is_typing(Event event) {
  return event == Event::kType || event == Event::kNewline || event == Event::kAccept;
}

/// The candidate's text, and the lines under it: a model that writes the one often goes on to the
/// others.
std::string judged_text(const recall::Candidate& candidate) {
  std::string draft = candidate.text;
  for (const recall::NextLine& line : candidate.next) {
    if (draft.size() >= kJudgedBytesMax) break;
    draft.append("\n").append(line.text);
  }
  return draft.substr(0, kJudgedBytesMax);
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

/// From which chance on a further line is shown: that all of the text up to its end is right.
double least_chance_of_lines(Eagerness eagerness) {
  return by_eagerness(eagerness, 0.65, 0.4, 0.3);
}

/// The text that is shown of a candidate, before it is fitted.
struct Part {
  std::string text;
  double gain = 0;  ///< characters that the user may expect to be spared
};

/// The first `bytes`, and if they are the whole line, the lines under it as far as they are likely and
/// as the stop rules let a block go.
Part part_of(const recall::Candidate& candidate, std::size_t bytes, const Turn& turn) {
  const Options& options = turn.request().options;
  Part part{candidate.text.substr(0, bytes), expected_gain(candidate, bytes)};
  if (options.stop != StopRule::kBlock || bytes < candidate.text.size() || candidate.next.empty())
    return part;
  double chance = candidate.boundaries.back().chance;
  const double least = least_chance_of_lines(options.eagerness);
  std::string block = part.text;
  std::vector<double> chances;
  for (const recall::NextLine& line : candidate.next) {
    chance *= line.chance;
    if (chance < least) break;
    block.append("\n").append(line.text);
    chances.push_back(chance);
  }
  StopRules rules(options.stop, stop_place(turn.context()));
  rules.feed(block);
  block = rules.finish();
  if (!block.starts_with(part.text)) return part;
  part.text.clear();
  std::size_t line = 0, begin = bytes;
  for (const double of_line : chances) {
    if (begin >= block.size()) break;
    const std::size_t end = begin + 1 + candidate.next[line++].text.size();
    part.gain += of_line * static_cast<double>(std::min(end, block.size()) - begin);
    begin = end;
  }
  part.text = std::move(block);
  return part;
}

std::optional<Item> fitted(std::string_view text, const Turn& turn) {
  Fitted shown = fit(text, turn.context());
  if (shown.text.empty()) return std::nullopt;
  return Item{std::move(shown.text), turn.cursor, shown.replace_end};
}

/// The candidate with its chances as they are for this user.
recall::Candidate adapted(recall::Candidate candidate, bool judged, const Turn& turn) {
  if (turn.taste == nullptr) return candidate;
  const std::string language = language_of(turn.request());
  for (recall::Boundary& boundary : candidate.boundaries)
    boundary.chance = turn.taste->adapted(language, boundary.chance);
  const recall::Place place = candidate.evidence.place;
  cut_anew(candidate, judged ? judged_cut(place) : recall::cut_of(place));
  return candidate;
}

/// Makes the candidate what is shown, if it is worth it.
void take(Recalled& recalled, const recall::Candidate& found, const Turn& turn) {
  const recall::Candidate candidate = adapted(found, recalled.judged, turn);
  const std::size_t bytes = shown_bytes(candidate, turn.request().options.eagerness);
  if (bytes == 0) return;
  Part part = part_of(candidate, bytes, turn);
  recalled.item = fitted(part.text, turn);
  if (!recalled.item) return;
  recalled.rejected =
      turn.document.rejections.turned_down(turn.snapshot(), turn.cursor, recalled.item->text);
  if (recalled.rejected) return recalled.item.reset();
  recalled.chance = chance_at(candidate, bytes);
  recalled.gain = part.gain;
}

/// The first of the candidates that is worth it. Who waved one away does not want the next.
void take_best(Recalled& recalled, const Turn& turn) {
  for (const recall::Candidate& candidate : recalled.candidates) {
    if (recalled.item || recalled.rejected) return;
    take(recalled, candidate, turn);
  }
}

}  // namespace

Draft draft_of(const Recalled& recalled) {
  Draft draft;
  for (const recall::Candidate& candidate : recalled.candidates)
    draft.candidates.push_back(judged_text(candidate));
  if (draft.candidates.empty()) return draft;
  draft.text = draft.candidates.front();
  draft.chance = recalled.candidates.front().boundaries.front().chance;
  return draft;
}

void note_accepted(recall::Index& index, const Turn& turn) {
  const TextHome& home = turn.request().home;
  if (home.path.empty()) return;
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
    if (candidate.boundaries.empty()) continue;
    recalled.candidates.push_back(std::move(candidate));
  }
  return recalled;
}

Recalled with_model(const Recalled& recalled, const Turn& turn) {
  Recalled judged;
  if (turn.judged.size() != recalled.candidates.size()) {
    judged.candidates = recalled.candidates;
    take_best(judged, turn);
    return judged;
  }
  judged.judged = true;
  for (std::size_t i = 0; i < turn.judged.size(); ++i)
    judged.candidates.push_back(with_model(recalled.candidates[i], turn.judged[i]));
  std::ranges::stable_sort(judged.candidates, std::ranges::greater(), recall::worth_of);
  take_best(judged, turn);
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
