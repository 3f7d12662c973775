#include "daemon/recall/search.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "daemon/recall/scan.h"
#include "daemon/recall/scroll.h"

namespace efimd::recall {

namespace {

/// Neighbours that one probe looks at in all batches together: a word's beginning may stand behind
/// many contexts that go on otherwise.
constexpr std::size_t kNeighboursMax = 48;
constexpr std::size_t kNeedleBytes = 4;
/// Neighbours that are fetched from memory before they are looked at.
constexpr std::size_t kAhead = 4;
/// A line above must agree in more than a closing bracket's bytes.
constexpr std::size_t kAgreedAboveMin = 4;

std::size_t least_agreed(const Probe& probe) {
  return probe.over_line_end ? kAgreedAboveMin : kAgreedBytesMin;
}

/// Where a needle ends well before the cursor: of the blanks that fill a column only one is in it,
/// because text is full of blanks.
std::size_t without_column(std::string_view text, std::size_t cursor) {
  std::size_t end = cursor;
  while (end > 0 && is_blank(text[end - 1])) --end;
  return cursor - end < kNeedleBytes ? cursor : end + 1;
}

void describe(Match& match, const Scanned& from) {
  match.source = from.source;
  match.scanned_path = from.path;
  match.edited = from.edited;
}

/// The byte that the text goes on with.
const char* place_of(const Match& match) { return match.text.data() + match.goes_on; }

/// Both probes may find a place: the better match of it stays.
void drop_repeated(std::vector<Match>& matches) {
  std::vector<std::pair<const char*, std::size_t>> places;
  for (std::size_t i = 0; i < matches.size(); ++i) places.emplace_back(place_of(matches[i]), i);
  std::ranges::sort(places, [&](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first
                              : matches[a.second].agreed > matches[b.second].agreed;
  });
  std::vector<Match> kept;
  kept.reserve(matches.size());
  for (std::size_t i = 0; i < places.size(); ++i)
    if (i == 0 || places[i].first != places[i - 1].first) kept.push_back(matches[places[i].second]);
  matches = std::move(kept);
}

struct Window {
  std::size_t begin, end;
};
/// A match that begins before a difference may reach into it, and the file's order does not tell where
/// a place shortly behind it is.
Window window_around(const text::Differences::Span& span, std::string_view text) {
  constexpr std::size_t kBeforeBytes = 64, kBehindBytes = Batch::kContextBytesMax + kNeedleBytes;
  return {span.begin - std::min(span.begin, kBeforeBytes),
          std::min(text.size(), span.end + kBehindBytes)};
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

void Search::scan(const ChangedFile& changed) {
  std::size_t scanned = 0;
  for (const text::Differences::Span& span : changed.differences->spans()) {
    auto [begin, end] = window_around(span, changed.document.text);
    begin = std::max(begin, scanned);
    if (begin >= end) continue;
    scan_window(changed.document, begin, std::min(end, begin + 2 * kOtherBytesMax));
    scanned = end;
  }
  changed_.push_back(changed);
}

void prefetch(const ChangedFile& changed) {
  constexpr std::size_t kLineBytes = 64, kPrefetchedBytesMax = 512;
  for (const text::Differences::Span& span : changed.differences->spans()) {
    const auto [begin, end] = window_around(span, changed.document.text);
    for (std::size_t at = begin; at < std::min(end, begin + kPrefetchedBytesMax); at += kLineBytes)
      __builtin_prefetch(changed.document.text.data() + at);
  }
}

void Search::scan(const Scroll& scroll) {
  const std::size_t end = scroll.text().size();
  const std::size_t left = kScannedBytesMax - std::min(kScannedBytesMax, scanned_bytes_);
  scan_window(scroll.text(), end - std::min(end, left), end,
              [&](std::size_t at) { return scroll.part_at(at); });
}

void Search::scan_window(const Scanned& scanned, std::size_t begin, std::size_t end) {
  scan_window(scanned.text, begin, end, [&](std::size_t) { return Placed{scanned}; });
}

template <class PartAt>
void Search::scan_window(std::string_view text, std::size_t begin, std::size_t end,
                         const PartAt& part_at) {
  if (scanned_bytes_ + (end - begin) > kScannedBytesMax) return;
  scanned_bytes_ += end - begin;
  for (const Probe& probe : asked_.probes()) {
    const std::string_view context = asked_.context(probe);
    // In the line, the needle ends at the cursor: the more of it is known, the rarer it is.
    const std::size_t needle_end =
        probe.over_line_end ? probe.anchor : without_column(asked_.text(), asked_.cursor());
    const std::size_t needle_bytes = std::min(needle_end, kNeedleBytes);
    const std::string_view needle = asked_.text().substr(needle_end - needle_bytes, needle_bytes);
    const std::size_t typed = asked_.bytes_since(probe);
    if (needle.size() < kNeedleBytes) continue;
    for (const std::size_t found : ends_of(needle, text.substr(begin, end - begin))) {
      const std::size_t needle_begin = begin + found - needle_bytes;
      const auto& [part, part_begin] = part_at(needle_begin);
      const std::size_t ends_at = needle_begin + needle_bytes - part_begin;  // in the part
      const std::size_t at = ends_at + probe.anchor - needle_end;
      if (ends_at + probe.anchor < needle_end || std::max(ends_at, at) > part.text.size()) continue;
      const std::size_t agreed = common_suffix(context, part.text.substr(0, at));
      if (agreed + typed < scanned_floor_) continue;
      auto match = asked_.match(probe, part.text, at, agreed);
      if (!match || match->agreed < least_agreed(probe)) continue;
      // The line above the cursor goes on with the cursor's own line, which is no news.
      if (part.source == Source::kThisFile && match->goes_on >= asked_.line_begin() &&
          match->goes_on <= asked_.line_end())
        continue;
      describe(*match, part);
      scanned_.push_back(*match);
    }
  }
  if (scanned_.size() <= 2 * kScannedMatchesMax) return;
  keep_best(scanned_, kScannedMatchesMax);
  scanned_floor_ = std::ranges::min(scanned_, {}, &Match::agreed).agreed;
}

void Search::look_up(std::span<const HeldBatch* const> batches, const PlacedFile& own) {
  own_ = own;
  std::vector<Batch::Context> contexts;
  for (const Probe& probe : asked_.probes()) contexts.emplace_back(asked_.context(probe));
  std::vector<Batch::Sought> sought;
  for (const Batch::Context& context : contexts)
    for (const HeldBatch* held : batches) sought.push_back({held->batch.get(), &context});
  for (const HeldBatch* held : batches) held->batch->prefetch_files();
  const std::vector<std::size_t> ranks = Batch::ranks_of(sought);
  for (std::size_t i = 0; i < sought.size(); ++i)
    for (std::size_t ahead = 0; ahead < kAhead; ++ahead) {
      sought[i].batch->prefetch(ranks[i] + ahead);
      sought[i].batch->prefetch(ranks[i] - std::min(ranks[i], ahead + 1));
    }
  std::span<const std::size_t> left = ranks;
  for (const Probe& probe : asked_.probes()) {
    look_up(probe, batches, left.first(batches.size()));
    left = left.subspan(batches.size());
  }
}

/// The next neighbour of the query's rank, on one side in one batch.
struct Search::Side {
  const HeldBatch* held;
  std::size_t rank;
  bool up;
  std::size_t agreed;
  bool operator<(const Side& other) const { return agreed < other.agreed; }
};

/// A place in a batch that a probe has found.
struct Search::Neighbour {
  const HeldBatch* held;
  std::size_t anchor;
  std::size_t agreed;
  Batch::At at = {};
};

void Search::look_up(const Probe& probe, std::span<const HeldBatch* const> batches,
                     std::span<const std::size_t> ranks) {
  const std::string_view context = asked_.context(probe);
  const std::string_view comparable = context.substr(context.rfind('\0') + 1);
  std::priority_queue<Side> sides;
  const auto push = [&](const HeldBatch* held, std::size_t rank, bool up) {
    if (rank >= held->batch->anchor_count()) return;
    held->batch->prefetch(up ? rank + kAhead : rank - std::min(rank, kAhead));
    const std::size_t agreed = held->batch->agreement(rank, comparable);
    if (agreed > 0) sides.push({held, rank, up, agreed});
  };
  for (std::size_t i = 0; i < batches.size(); ++i) {
    push(batches[i], ranks[i], true);
    if (ranks[i] > 0) push(batches[i], ranks[i] - 1, false);
  }
  std::vector<Neighbour> found;
  found.reserve(kNeighboursMax);
  const std::string_view typed = asked_.typed_since(probe);
  for (std::size_t seen = 0; !sides.empty() && seen < kNeighboursMax; ++seen) {
    const Side side = sides.top();
    sides.pop();
    const std::size_t anchor = side.held->batch->anchor(side.rank);
    if (side.held->batch->text_from(anchor).starts_with(typed))
      found.push_back({side.held, anchor, side.agreed});
    if (side.up || side.rank > 0) push(side.held, side.up ? side.rank + 1 : side.rank - 1, side.up);
  }
  add_from(found, probe);
  keep_best(looked_up_, 2 * kBatchMatchesMax);
}

void Search::add_from(std::span<Neighbour> found, const Probe& probe) {
  for (Neighbour& each : found) {
    each.at = each.held->batch->file_at(each.anchor);
    __builtin_prefetch(&each.held->states[each.at.file]);
  }
  for (const Neighbour& each : found) add_from(*each.held, each.at, each.agreed, probe);
}

void Search::add_from(const HeldBatch& held, const Batch::At& place, std::size_t agreed,
                      const Probe& probe) {
  const auto& [file, at] = place;
  const HeldBatch::State state = held.states[file];
  if (state == HeldBatch::State::kRemoved || (&held == own_.held && file == own_.file)) return;
  const std::string* const path = &held.batch->path(file);
  if (state == HeldBatch::State::kChanged) {
    const auto changed = std::ranges::find(
        changed_, *path, [](const ChangedFile& each) { return each.document.path; });
    if (changed != changed_.end()) add_from(*changed, at, probe);
    return;
  }
  auto match = asked_.match(probe, held.batch->text(file), at, agreed);
  if (!match) return;
  match->batch_path = path;
  match->edited = state == HeldBatch::State::kEdited;
  add_looked_up(*match, probe);
}

/// Compares with the document, because the file's text before `place` may be other than its.
void Search::add_from(const ChangedFile& changed, std::size_t place, const Probe& probe) {
  const std::string_view text = changed.document.text;
  const auto at = changed.differences->moved(place);
  if (!at || *at > text.size()) return;
  const std::size_t agreed = common_suffix(asked_.context(probe), text.substr(0, *at));
  auto match = asked_.match(probe, text, *at, agreed);
  if (!match) return;
  describe(*match, changed.document);
  add_looked_up(*match, probe);
}

void Search::add_looked_up(const Match& match, const Probe& probe) {
  if (match.agreed >= least_agreed(probe)) looked_up_.push_back(match);
}

std::vector<Match> Search::take() {
  std::vector<Match> all;
  all.reserve(scanned_.size() + looked_up_.size());
  for (auto* found : {&scanned_, &looked_up_}) {
    keep_best(*found, kScannedMatchesMax);
    std::ranges::move(*found, std::back_inserter(all));
  }
  drop_repeated(all);
  constexpr std::size_t kLinesAboveBytes = 128;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i + kAhead < all.size()) {
      const Match& next = all[i + kAhead];
      __builtin_prefetch(place_of(next));
      __builtin_prefetch(place_of(next) - std::min(kLinesAboveBytes, next.goes_on));
    }
    asked_.judge(all[i]);
  }
  std::ranges::sort(all, [](const Match& a, const Match& b) { return a.weight > b.weight; });
  return all;
}

}  // namespace efimd::recall
