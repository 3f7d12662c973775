#include "daemon/recall/search.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "daemon/recall/scan.h"

namespace efimd::recall {

namespace {

/// Neighbours that one probe looks at in all batches together: a word's beginning may stand behind
/// many contexts that go on otherwise.
constexpr std::size_t kNeighboursMax = 192;
constexpr std::size_t kNeedleBytes = 4;
/// Neighbours that are fetched from memory before they are looked at.
constexpr std::size_t kAhead = 4;
/// A line above must agree in more than a closing bracket's bytes.
constexpr std::size_t kAgreedAboveMin = 4;

std::size_t least_agreed(const Probe& probe) {
  return probe.over_line_end ? kAgreedAboveMin : kAgreedBytesMin;
}

void keep_best(std::vector<Match>& matches, std::size_t most) {
  if (matches.size() <= most) return;
  const auto end = matches.begin() + static_cast<std::ptrdiff_t>(most);
  std::ranges::nth_element(matches, end,
                           [](const Match& a, const Match& b) { return a.agreed > b.agreed; });
  matches.erase(end, matches.end());
}

}  // namespace

void Search::scan_own(std::string_view path) {
  const Scanned own{asked_.text(), Source::kThisFile, path};
  const std::size_t begin = asked_.line_begin(), end = asked_.line_end();
  scan_window(own, begin - std::min(begin, kOwnBytesMax), begin);
  scan_window(own, end, std::min(own.text.size(), end + kOwnBytesMax));
}

void Search::scan(const Scanned& scanned, std::size_t centre) {
  centre = std::min(centre, scanned.text.size());
  scan_window(scanned, centre - std::min(centre, kOtherBytesMax),
              std::min(scanned.text.size(), centre + kOtherBytesMax));
}

void Search::scan_window(const Scanned& scanned, std::size_t begin, std::size_t end) {
  const bool own = scanned.source == Source::kThisFile;
  scanned_bytes_ += end - begin;
  if (scanned_bytes_ > kScannedBytesMax) return;
  for (const Probe& probe : asked_.probes()) {
    const std::string_view context = asked_.context(probe);
    // In the line, the needle ends at the cursor: the more of it is known, the rarer it is.
    const std::size_t needle_end = probe.over_line_end ? probe.anchor : asked_.cursor();
    const std::size_t needle_bytes = std::min(needle_end, kNeedleBytes);
    const std::string_view needle = asked_.text().substr(needle_end - needle_bytes, needle_bytes);
    const std::size_t forward = needle_end - probe.anchor;
    if (needle.size() < kNeedleBytes) continue;
    for (const std::size_t found : ends_of(needle, scanned.text.substr(begin, end - begin))) {
      const std::size_t at = begin + found - forward;
      if (begin + found < forward) continue;
      auto match = asked_.match(probe, scanned.text, at, 0);
      if (!match) continue;
      // The line above the cursor goes on with the cursor's own line, which is no news.
      if (own && match->goes_on >= asked_.line_begin() && match->goes_on <= asked_.line_end())
        continue;
      match->agreed += common_suffix(context, scanned.text.substr(0, at));
      if (match->agreed < least_agreed(probe)) continue;
      match->source = scanned.source;
      match->path = scanned.path;
      scanned_.push_back(*match);
    }
  }
  keep_best(scanned_, 2 * kScannedMatchesMax);
}

void Search::look_up(std::span<const HeldBatch* const> batches) {
  for (const Probe& probe : asked_.probes()) look_up(probe, batches);
}

/// The next neighbour of the query's rank, on one side in one batch.
struct Search::Side {
  const HeldBatch* held;
  std::size_t rank;
  bool up;
  std::size_t agreed;
  bool operator<(const Side& other) const { return agreed < other.agreed; }
};

void Search::look_up(const Probe& probe, std::span<const HeldBatch* const> batches) {
  const std::string_view context = asked_.context(probe);
  std::priority_queue<Side> sides;
  const auto push = [&](const HeldBatch* held, std::size_t rank, bool up) {
    if (rank >= held->batch->anchor_count()) return;
    held->batch->prefetch(up ? rank + kAhead : rank - std::min(rank, kAhead));
    const std::size_t agreed = held->batch->agreement(rank, context);
    if (agreed > 0) sides.push({held, rank, up, agreed});
  };
  std::vector<std::size_t> ranks;
  for (const HeldBatch* held : batches) {
    ranks.push_back(held->batch->rank_of(context));
    for (std::size_t ahead = 0; ahead < kAhead; ++ahead) {
      held->batch->prefetch(ranks.back() + ahead);
      held->batch->prefetch(ranks.back() - std::min(ranks.back(), ahead + 1));
    }
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    push(batches[i], ranks[i], true);
    if (ranks[i] > 0) push(batches[i], ranks[i] - 1, false);
  }
  for (std::size_t seen = 0; !sides.empty() && seen < kNeighboursMax; ++seen) {
    const Side side = sides.top();
    sides.pop();
    add_from(*side.held, side.rank, side.agreed, probe);
    if (side.up || side.rank > 0) push(side.held, side.up ? side.rank + 1 : side.rank - 1, side.up);
  }
  keep_best(looked_up_, 2 * kBatchMatchesMax);
}

void Search::add_from(const HeldBatch& held, std::size_t rank, std::size_t agreed,
                      const Probe& probe) {
  const auto [file, at] = held.batch->file_at(held.batch->anchor(rank));
  if (held.states[file] != HeldBatch::State::kSearched) return;
  auto match = asked_.match(probe, held.batch->text(file), at, agreed);
  if (!match || match->agreed < least_agreed(probe)) return;
  match->path = held.batch->path(file);
  looked_up_.push_back(*match);
}

std::vector<Match> Search::take() {
  const auto place = [](const Match& match) { return match.text.data() + match.goes_on; };
  std::vector<Match> all;
  for (auto* found : {&scanned_, &looked_up_}) {
    keep_best(*found, kScannedMatchesMax);
    std::ranges::move(*found, std::back_inserter(all));
  }
  std::ranges::sort(all, [&](const Match& a, const Match& b) {
    return place(a) != place(b) ? place(a) < place(b) : a.agreed > b.agreed;
  });
  const auto same = [&](const Match& a, const Match& b) { return place(a) == place(b); };
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  for (Match& match : all) asked_.judge(match);
  std::ranges::sort(all, [](const Match& a, const Match& b) { return a.weight > b.weight; });
  return all;
}

}  // namespace efimd::recall
