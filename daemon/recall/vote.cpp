#include "daemon/recall/vote.h"

#include <algorithm>
#include <array>
#include <span>

#include "daemon/recall/chance.h"

namespace efimd::recall {

namespace {

constexpr std::size_t kTextsMax = 10;       ///< different continuations that are judged
constexpr std::size_t kBoundariesMax = 40;  ///< of one
constexpr std::size_t kSourcesCounted = 8;

/// Where a continuation may be cut: after each word and each sign, but not after a blank.
std::vector<std::size_t> boundaries_of(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 1; at < text.size() && ends.size() + 1 < kBoundariesMax; ++at) {
    const char before = text[at - 1];
    if (!is_blank(before) && !(is_word(before) && is_word(text[at]))) ends.push_back(at);
  }
  ends.push_back(text.size());
  return ends;
}

struct Ballot {
  std::string_view text;
  double weight = 0;
  const Match* best = nullptr;
};

/// The different continuations, the weightiest first. Matches come the weightiest first.
std::vector<Ballot> ballots_of(std::span<const Match> matches) {
  std::vector<Ballot> ballots;
  for (const Match& match : matches) {
    const auto found = std::ranges::find(ballots, match.continuation, &Ballot::text);
    if (found == ballots.end())
      ballots.push_back({match.continuation, match.weight, &match});
    else
      found->weight += match.weight;
  }
  std::ranges::stable_sort(ballots,
                           [](const Ballot& a, const Ballot& b) { return a.weight > b.weight; });
  return ballots;
}

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto ends = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(ends.in1 - a.begin());
}

/// Adds up who votes for one continuation up to each of its boundaries.
class Tally {
 public:
  Tally(const Asked& asked, std::span<const Match> matches, std::string_view text)
      : asked_(asked), matches_(matches), text_(text) {
    for (const Match& match : matches_) {
      equal_.push_back(common_prefix(match.continuation, text_));
      all_ += match.weight;
      if (match.continuation.empty()) nothing_ += match.weight;
    }
  }

  Support up_to(std::size_t bytes) const {
    Support support{.typed = asked_.around().typed.size(),
                    .bytes = bytes,
                    .to_line_end = bytes == text_.size(),
                    .in_word = asked_.cursor() > 0 && is_word(asked_.text()[asked_.cursor() - 1]),
                    .same_indent_step = false,
                    .weight_nothing = nothing_,
                    .open_bracket = asked_.has_open_bracket(),
                    .after_closer = asked_.after_closer()};
    std::array<std::string_view, kSourcesCounted> paths;
    for (std::size_t i = 0; i < matches_.size(); ++i) {
      const Match& match = matches_[i];
      if (equal_[i] < bytes || (support.to_line_end && match.continuation.size() != bytes))
        continue;
      add(support, match);
      const auto end = paths.begin() + static_cast<std::ptrdiff_t>(support.sources);
      if (end != paths.end() && std::find(paths.begin(), end, match.path) == end)
        paths[support.sources++] = match.path;
    }
    support.weight_others = std::max(0.0, all_ - support.weight);
    return support;
  }

 private:
  static void add(Support& support, const Match& match) {
    support.weight += match.weight;
    ++support.votes;
    support.agreed = std::max(support.agreed, match.agreed);
    support.lines_above = std::max(support.lines_above, match.lines_above);
    support.fits_below |= match.fits_below;
    support.same_indent_step |= match.same_indent_step;
    if (match.source != Source::kThisFile) return;
    support.distance_lines = support.same_file
                                 ? std::min(support.distance_lines, match.distance_lines)
                                 : match.distance_lines;
    support.same_file = true;
  }

  const Asked& asked_;
  std::span<const Match> matches_;
  std::string_view text_;
  std::vector<std::size_t> equal_;
  double all_ = 0, nothing_ = 0;
};

Evidence evidence_of(const Asked& asked, const Support& support, std::size_t heard) {
  return {.place = asked.place(),
          .match_bytes = support.agreed,
          .line_match_bytes = std::min(support.agreed, support.typed),
          .lines_above = support.lines_above,
          .votes = support.votes,
          .rivals = heard,
          .share = support.weight / std::max(1e-9, support.weight + support.weight_others),
          .sources = support.sources,
          .same_file = support.same_file,
          .distance_lines = support.distance_lines,
          .fits_below = support.fits_below};
}

Candidate candidate_of(const Asked& asked, const Ballot& ballot, std::span<const Match> matches) {
  const Tally tally(asked, matches, ballot.text);
  Candidate candidate{.text = std::string(ballot.text),
                      .source = ballot.best->source,
                      .path = std::string(ballot.best->path)};
  const Cut cut = cut_of(asked.place());
  double chance = 1;
  Support shown;
  for (const std::size_t bytes : boundaries_of(ballot.text)) {
    const Support support = tally.up_to(bytes);
    const Features features = features_of(support);
    // A longer text cannot be likelier than its beginning.
    chance = std::min(chance, chance_of(features, asked.place()));
    candidate.boundaries.push_back({bytes, chance, features});
    if (candidate.boundaries.front().chance < cut.show || chance < cut.hold) continue;
    candidate.shown = bytes;
    candidate.chance = chance;
    shown = support;
  }
  if (candidate.shown == 0) shown = tally.up_to(candidate.boundaries.front().bytes);
  candidate.evidence = evidence_of(asked, shown, matches.size());
  return candidate;
}

/// What orders candidates: bytes that the user may expect to be spared; and most of all a line that
/// is right to its end, since it takes one key and no look at the rest.
double worth_of(const Candidate& candidate) {
  constexpr double kWholeLine = 3, kKeysOfDoubt = 4;
  double bytes = 0;
  std::size_t begin = 0;
  for (const Boundary& boundary : candidate.boundaries) {
    bytes += boundary.chance * static_cast<double>(boundary.bytes - begin);
    begin = boundary.bytes;
  }
  const double whole = candidate.boundaries.back().chance;
  return bytes + kWholeLine * whole * (static_cast<double>(candidate.text.size()) + kKeysOfDoubt);
}

bool stands_there_already(const Asked& asked, std::string_view text) {
  if (asked.place() == Place::kStart) return trimmed(text) == asked.around().below;
  return !asked.tail().empty() && trimmed(text) == asked.tail();
}

/// The text without the rest of the cursor's line, which it would double.
std::string_view without_tail(const Asked& asked, std::string_view text) {
  const std::string_view tail = asked.tail();
  if (tail.empty() || !text.ends_with(tail)) return text;
  text.remove_suffix(tail.size());
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

}  // namespace

std::vector<Candidate> candidates_of(const Asked& asked, const std::vector<Match>& matches,
                                     std::size_t most) {
  std::vector<Match> heard = matches;
  for (Match& match : heard) match.continuation = without_tail(asked, match.continuation);
  // Where a blank line is there already, the next line is asked for, not whether there is one.
  if (asked.place() == Place::kStart)
    std::erase_if(heard, [](const Match& match) { return match.continuation.empty(); });
  std::vector<Candidate> candidates;
  for (const Ballot& ballot : ballots_of(heard)) {
    if (candidates.size() == kTextsMax) break;
    if (ballot.text.empty() || stands_there_already(asked, ballot.text)) continue;
    candidates.push_back(candidate_of(asked, ballot, heard));
  }
  std::ranges::stable_sort(
      candidates, [](const Candidate& a, const Candidate& b) { return worth_of(a) > worth_of(b); });
  if (candidates.size() > most) candidates.resize(most);
  return candidates;
}

}  // namespace efimd::recall
