#include "daemon/recall/next_lines.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "daemon/recall/chance.h"
#include "daemon/recall/next_table.h"
#include "daemon/text/indentation.h"

namespace efimd::recall {

namespace {

constexpr std::size_t kVotersMax = 32;
/// Less likely lines, all before them counted, are no help.
constexpr double kChanceMin = 0.2;
constexpr std::size_t kNextLineBytesMax = 256;

std::string_view blanks_of(std::string_view text, std::size_t begin) {
  std::size_t end = begin;
  while (end < text.size() && is_blank(text[end])) ++end;
  return text.substr(begin, end - begin);
}

/// First byte of the line under the one that `at` is in; the text's size if there is none.
std::size_t next_begin(std::string_view text, std::size_t at) {
  return std::min(line_end(text, at) + 1, text.size());
}

/// A match whose line is the candidate's, and where its next line begins.
struct Voter {
  const Match* match;
  std::size_t at;
  std::string_view indentation;  ///< of its line
  std::string_view line = {};    ///< its next one
};

struct LineBallot {
  std::string_view content;
  double weight = 0;
  std::size_t votes = 0;
};

/// So many levels of `columns` spaces as the other text has in `theirs`; as many columns, if it
/// indents by tabs, or if they are no whole levels.
std::size_t in_levels(std::size_t columns, const text::Indentation& theirs,
                      const text::Indentation& ours) {
  if (!theirs.known || !ours.known || theirs.tabs || ours.tabs) return columns;
  const auto level = static_cast<std::size_t>(theirs.spaces);
  return columns % level != 0 ? columns : columns / level * static_cast<std::size_t>(ours.spaces);
}

class Reading {
 public:
  Reading(const Asked& asked, std::string_view line, std::span<const Match> heard)
      : asked_(asked), indentation_(blanks_of(asked.text(), asked.line_begin())) {
    for (const Match& match : heard) {
      if (voters_.size() == kVotersMax) break;
      if (match.continuation != line || match.is_cut || match.is_analogy) continue;
      const std::size_t begin = line_begin(match.text, match.goes_on);
      voters_.push_back(
          {&match, next_begin(match.text, match.goes_on), blanks_of(match.text, begin)});
    }
  }

  /// The next line, which is counted from 1; only who says it is heard further.
  std::optional<NextLine> next(std::size_t number) {
    std::erase_if(voters_, [&](const Voter& voter) { return is_at_cursor(voter); });
    std::vector<LineBallot> ballots;
    double all = 0;
    for (Voter& voter : voters_) {
      const std::string_view text = voter.match->text;
      voter.line = text.substr(voter.at, line_end(text, voter.at) - voter.at);
      all += voter.match->weight;
      if (voter.at == text.size() || voter.line.size() > kNextLineBytesMax) continue;
      const std::string_view content = trimmed(voter.line);
      auto found = std::ranges::find(ballots, content, &LineBallot::content);
      if (found == ballots.end()) found = ballots.insert(found, LineBallot{content});
      found->weight += voter.match->weight;
      ++found->votes;
    }
    const auto best = std::ranges::max_element(ballots, {}, &LineBallot::weight);
    if (best == ballots.end()) return std::nullopt;
    std::erase_if(voters_, [&](const Voter& voter) {
      return voter.at == voter.match->text.size() || trimmed(voter.line) != best->content;
    });
    const Voter& first = voters_.front();
    const std::string_view blanks = blanks_of(first.line, 0);
    NextLine line;
    if (!best->content.empty()) line.text = moved(first, blanks).append(best->content);
    line.features = features_of(*best, all - best->weight, number, first, blanks);
    line.chance = chance_of(line.features);
    for (Voter& voter : voters_) voter.at = next_begin(voter.match->text, voter.at);
    return line;
  }

 private:
  /// Where the voter stands next, the cursor's indentation has the levels that the voter's next line
  /// has more or less than its own.
  std::string moved(const Voter& voter, std::string_view next) {
    const std::string_view there = voter.indentation;
    if (next == there) return std::string(indentation_);
    // Once for all lines: each reads hundreds of lines.
    if (!ours_) ours_ = text::indentation_of(asked_.text(), asked_.cursor());
    if (measured_ != voter.match) {
      measured_ = voter.match;
      theirs_ = text::indentation_of(voter.match->text, voter.at);
    }
    const auto levels = [&](std::size_t columns) { return in_levels(columns, theirs_, *ours_); };
    if (next.starts_with(there)) {
      const std::string_view more = next.substr(there.size());
      const bool tabs = more.find('\t') != std::string_view::npos;
      return std::string(indentation_)
          .append(tabs ? std::string(more) : std::string(levels(more.size()), ' '));
    }
    const std::size_t less = levels(there.size() - std::min(there.size(), next.size()));
    return std::string(
        indentation_.substr(0, indentation_.size() - std::min(indentation_.size(), less)));
  }

  /// What stands under a match above the cursor comes to the cursor's own line.
  bool is_at_cursor(const Voter& voter) const {
    return voter.match->source == Source::kThisFile && voter.at >= asked_.line_begin() &&
           voter.at <= asked_.line_end();
  }

  NextFeatures features_of(const LineBallot& ballot, double others, std::size_t number,
                           const Voter& first, std::string_view blanks) const {
    constexpr double kNobody = 4;  // the weight of doubt where few matches were heard
    const auto log2_of = [](std::size_t n) {
      return static_cast<float>(std::log2(static_cast<double>(n) + 1));
    };
    std::size_t agreed = 0, lines_above = 0;
    bool same_file = false, fits_indent = false;
    for (const Voter& voter : voters_) {
      agreed = std::max(agreed, voter.match->agreed);
      lines_above = std::max(lines_above, voter.match->lines_above);
      same_file |= voter.match->source == Source::kThisFile;
      fits_indent |= voter.match->same_indent_step;
    }
    const std::size_t there = first.indentation.size();
    return {1,
            static_cast<float>(ballot.weight / (ballot.weight + others + kNobody)),
            log2_of(ballot.votes),
            log2_of(agreed),
            static_cast<float>(lines_above),
            same_file ? 1.0F : 0.0F,
            fits_indent ? 1.0F : 0.0F,
            log2_of(number),
            log2_of(ballot.content.size()),
            ballot.content.empty() ? 1.0F : 0.0F,
            blanks.size() > there ? 1.0F : 0.0F,
            blanks.size() < there ? 1.0F : 0.0F};
  }

  static double chance_of(const NextFeatures& features) {
    double sum = 0;
    for (std::size_t i = 0; i < features.size(); ++i)
      sum += static_cast<double>(features[i]) * kNextWeights[i];
    return chance_of_odds(sum);
  }

  const Asked& asked_;
  std::string_view indentation_;
  std::optional<text::Indentation> ours_;  ///< of the asking text, once it is needed
  const Match* measured_ = nullptr;        ///< of whose text theirs_ is
  text::Indentation theirs_;
  std::vector<Voter> voters_;
};

}  // namespace

std::vector<NextLine> next_lines(const Asked& asked, std::string_view line,
                                 std::span<const Match> heard) {
  std::vector<NextLine> lines;
  if (!asked.tail().empty()) return lines;
  Reading reading(asked, line, heard);
  double chance = 1;
  while (lines.size() < kNextLinesMax) {
    std::optional<NextLine> next = reading.next(lines.size() + 1);
    if (!next) break;
    chance *= next->chance;
    const std::string_view content = trimmed(next->text);
    const bool is_blank_again = content.empty() && !lines.empty() && lines.back().text.empty();
    const bool stands_there = !content.empty() && content == asked.around().below;
    if (chance < kChanceMin || is_blank_again || stands_there) break;
    lines.push_back(std::move(*next));
  }
  while (!lines.empty() && lines.back().text.empty()) lines.pop_back();
  return lines;
}

}  // namespace efimd::recall
