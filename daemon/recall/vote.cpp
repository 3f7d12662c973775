#include "daemon/recall/vote.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "daemon/recall/chance.h"
#include "daemon/recall/next_lines.h"

namespace efimd::recall {

namespace {

constexpr std::size_t kTextsMax = 6;        ///< different continuations that are judged
constexpr std::size_t kBoundariesMax = 40;  ///< of one
constexpr std::size_t kSourcesCounted = 8;
/// Lines are looked for under one that is at least so likely.
constexpr double kLineChanceMin = 0.3;

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
  std::size_t votes = 1;
};

/// The different continuations, the weightiest first. Matches come the weightiest first.
std::vector<Ballot> ballots_of(std::span<const Match> matches) {
  std::vector<Ballot> ballots;
  for (const Match& match : matches) {
    const auto found = std::ranges::find(ballots, match.continuation, &Ballot::text);
    if (found == ballots.end()) {
      ballots.push_back({match.continuation, match.weight, &match});
    } else {
      found->weight += match.weight;
      ++found->votes;
      // Text that stands somewhere says more: where that is, and what comes under it.
      if (found->best->is_analogy) found->best = &match;
    }
  }
  std::ranges::stable_sort(ballots,
                           [](const Ballot& a, const Ballot& b) { return a.weight > b.weight; });
  return ballots;
}

/// Adds up who votes for one continuation up to each of its boundaries.
///
/// Who agrees to a boundary agrees to those before it, too. So boundaries are visited from the last
/// to the first, each match is added once, and the sum at each boundary is that of its votes.
class Tally {
 public:
  Tally(const Asked& asked, std::span<const Match> matches, const Ballot& ballot)
      : matches_(matches), text_(ballot.text), is_cut_(ballot.best->is_cut) {
    support_.typed = asked.around().typed.size();
    support_.in_word = asked.cursor() > 0 && is_word(asked.text()[asked.cursor() - 1]);
    support_.same_indent_step = false;
    support_.open_bracket = asked.has_open_bracket();
    support_.after_closer = asked.after_closer();
    support_.is_analogy = ballot.best->is_analogy;
    first_.assign(text_.size() + 1, kNone);
    next_.assign(matches_.size(), kNone);
    for (std::size_t i = 0; i < matches_.size(); ++i) {
      const Match& match = matches_[i];
      all_ += match.weight;
      if (match.continuation.empty()) support_.weight_nothing += match.weight;
      const std::size_t equal = common_prefix(match.continuation, text_);
      if (equal == text_.size() && match.continuation.size() == equal)
        whole_.push_back(i);
      else if (equal > 0)
        next_[i] = std::exchange(first_[equal], i);
    }
    not_added_ = text_.size();
  }

  /// `bytes` falls from call to call, and is all of the text at first.
  Support up_to(std::size_t bytes) {
    support_.bytes = bytes;
    support_.to_line_end = bytes == text_.size() && !is_cut_;
    if (bytes == text_.size()) {
      for (const std::size_t match : whole_) add(matches_[match]);
    } else {
      // Lines that go on after the text come in from the boundary before its end on.
      for (; not_added_ + 1 > bytes; --not_added_)
        for (std::size_t i = first_[not_added_]; i != kNone; i = next_[i]) add(matches_[i]);
    }
    support_.weight_others = std::max(0.0, all_ - support_.weight);
    return support_;
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  void add(const Match& match) {
    support_.weight += match.weight;
    ++support_.votes;
    support_.agreed = std::max(support_.agreed, match.agreed);
    support_.lines_above = std::max(support_.lines_above, match.lines_above);
    support_.fits_below |= match.fits_below;
    support_.same_indent_step |= match.same_indent_step;
    const auto end = files_.begin() + static_cast<std::ptrdiff_t>(support_.sources);
    const auto is_of_it = [&](const Match* other) { return are_of_one_file(*other, match); };
    if (end != files_.end() && std::find_if(files_.begin(), end, is_of_it) == end)
      files_[support_.sources++] = &match;
    if (match.source != Source::kThisFile) return;
    support_.distance_lines = support_.same_file
                                  ? std::min(support_.distance_lines, match.distance_lines)
                                  : match.distance_lines;
    support_.same_file = true;
  }

  std::span<const Match> matches_;
  std::string_view text_;
  bool is_cut_;
  std::vector<std::size_t> whole_;  ///< matches whose line is this text
  /// Others by the bytes in which they agree: the first of each, and the next after each. To
  /// sort them would take as long as all the rest of a look-up's vote.
  std::vector<std::size_t> first_, next_;
  std::size_t not_added_ = 0;                             ///< those with more bytes were added
  std::array<const Match*, kSourcesCounted> files_ = {};  ///< a match of each
  Support support_;
  double all_ = 0;
};

Evidence evidence_of(const Asked& asked, const Support& support, std::size_t heard, bool edited) {
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
          .fits_below = support.fits_below,
          .edited = edited};
}

Candidate candidate_of(const Asked& asked, const Ballot& ballot, std::span<const Match> matches) {
  Tally tally(asked, matches, ballot);
  const std::vector<std::size_t> ends = boundaries_of(ballot.text);
  std::vector<Support> supports(ends.size());
  for (std::size_t i = ends.size(); i-- > 0;) supports[i] = tally.up_to(ends[i]);
  Candidate candidate{.text = std::string(ballot.text),
                      .source = ballot.best->source,
                      .path = std::string(ballot.best->path())};
  candidate.boundaries.reserve(ends.size());
  const Cut cut = cut_of(asked.place());
  std::size_t last_shown = 0;
  double chance = 1;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Features features = features_of(supports[i]);
    // A longer text cannot be likelier than its beginning.
    double own = chance_of(features, asked.place());
    if (ballot.best->edited) own = chance_if_edited(own, asked.place());
    chance = std::min(chance, own);
    candidate.boundaries.push_back({ends[i], chance, features});
    if (candidate.boundaries.front().chance < cut.show || chance < cut.hold) continue;
    candidate.shown = ends[i];
    candidate.chance = chance;
    last_shown = i;
  }
  candidate.evidence =
      evidence_of(asked, supports[last_shown], matches.size(), ballot.best->edited);
  return candidate;
}

/// Whether the cursor's line would be `other`. Lines of signs alone, as "});", often follow each other.
bool would_be(const Asked& asked, std::string_view text, std::string_view other) {
  const std::string_view typed = asked.around().typed;
  return std::ranges::any_of(other, is_word) && other.size() == typed.size() + text.size() &&
         other.starts_with(typed) && other.ends_with(text);
}

bool stands_there_already(const Asked& asked, std::string_view text) {
  const Surroundings& around = asked.around();
  if (asked.place() == Place::kStart && trimmed(text) == around.below) return true;
  if (!asked.tail().empty()) return trimmed(text) == asked.tail();
  if (would_be(asked, text, around.below)) return true;
  // Of 171 lines that said again what the line above says, 4 were right. Shorter ones, and those that
  // are indented otherwise, are words that close something, such as "end" and "</div>".
  constexpr std::size_t kSaidBytesMin = 10;
  const std::string_view above = around.above[0];
  return around.indent_step == 0 && above.size() >= kSaidBytesMin && would_be(asked, text, above);
}

/// The text without the rest of the cursor's line, which it would double.
std::string_view without_tail(const Asked& asked, std::string_view text) {
  const std::string_view tail = asked.tail();
  if (tail.empty() || !text.ends_with(tail)) return text;
  text.remove_suffix(tail.size());
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

std::vector<Candidate> best_of(std::vector<Candidate> candidates, std::size_t most) {
  std::vector<std::pair<double, std::size_t>> worth;
  for (std::size_t i = 0; i < candidates.size(); ++i)
    worth.emplace_back(-worth_of(candidates[i]), i);
  std::ranges::sort(worth);
  std::vector<Candidate> best;
  best.reserve(most);
  for (std::size_t i = 0; i < std::min(most, worth.size()); ++i)
    best.push_back(std::move(candidates[worth[i].second]));
  return best;
}

}  // namespace

Supported best_supported(const std::vector<Match>& matches) {
  if (matches.empty()) return {};
  double all = 0;
  for (const Match& match : matches) all += match.weight;
  const std::vector<Ballot> ballots = ballots_of(matches);
  const Ballot& ballot = ballots.front();
  return {ballot.best, ballot.weight / std::max(1e-9, all), ballot.votes};
}

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

std::vector<Candidate> candidates_of(const Asked& asked, std::vector<Match> heard,
                                     std::size_t most) {
  for (Match& match : heard) match.continuation = without_tail(asked, match.continuation);
  // Where a blank line is there already, the next line is asked for, not whether there is one.
  if (asked.place() == Place::kStart)
    std::erase_if(heard, [](const Match& match) { return match.continuation.empty(); });
  std::vector<Candidate> candidates;
  candidates.reserve(kTextsMax);
  for (const Ballot& ballot : ballots_of(heard)) {
    if (candidates.size() == kTextsMax) break;
    if (ballot.text.empty() || stands_there_already(asked, ballot.text)) continue;
    candidates.push_back(candidate_of(asked, ballot, heard));
  }
  candidates = best_of(std::move(candidates), most);
  for (Candidate& candidate : candidates)
    if (candidate.boundaries.back().chance >= kLineChanceMin)
      candidate.next = next_lines(asked, candidate.text, heard);
  return candidates;
}

}  // namespace efimd::recall
