#include "daemon/recall/search.h"

#include <algorithm>
#include <utility>

#include "daemon/recall/scan.h"

namespace efimd::recall {

namespace {

/// Neighbours that one probe looks at in all batches together: a word's beginning may stand behind
/// many contexts that go on otherwise.
constexpr std::size_t kNeighboursMax = 48;
constexpr std::size_t kNeedleBytes = 4;
/// Neighbours that are fetched from memory before they are looked at.
constexpr std::size_t kAhead = 4;
/// Neighbours that are looked at together.
constexpr std::size_t kTogether = 16;
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

void Search::scan_window(const Scanned& scanned, std::size_t begin, std::size_t end) {
  const bool own = scanned.source == Source::kThisFile;
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
    for (const std::size_t found : ends_of(needle, scanned.text.substr(begin, end - begin))) {
      const std::size_t at = begin + found + probe.anchor - needle_end;
      if (begin + found + probe.anchor < needle_end || at > scanned.text.size()) continue;
      const std::size_t agreed = common_suffix(context, scanned.text.substr(0, at));
      if (agreed + typed < scanned_floor_) continue;
      auto match = asked_.match(probe, scanned.text, at, agreed);
      if (!match || match->agreed < least_agreed(probe)) continue;
      // The line above the cursor goes on with the cursor's own line, which is no news.
      if (own && match->goes_on >= asked_.line_begin() && match->goes_on <= asked_.line_end())
        continue;
      match->source = scanned.source;
      match->path = scanned.path;
      match->edited = scanned.edited;
      scanned_.push_back(*match);
    }
  }
  if (scanned_.size() <= 2 * kScannedMatchesMax) return;
  keep_best(scanned_, kScannedMatchesMax);
  scanned_floor_ = std::ranges::min(scanned_, {}, &Match::agreed).agreed;
}

void Search::seek(std::vector<const HeldBatch*> batches, const PlacedFile& own) {
  own_ = own;
  batches_ = std::move(batches);
  std::vector<Batch::Context> contexts;
  for (const Probe& probe : asked_.probes()) contexts.emplace_back(asked_.context(probe));
  std::vector<Batch::Sought> sought;
  for (const Batch::Context& context : contexts)
    for (const HeldBatch* held : batches_) sought.push_back({held->batch.get(), &context});
  for (const HeldBatch* held : batches_) held->batch->prefetch_files();
  ranks_ = Batch::ranks_of(sought);
  for (std::size_t i = 0; i < sought.size(); ++i)
    for (std::size_t ahead = 0; ahead < kAhead; ++ahead) {
      sought[i].batch->prefetch(ranks_[i] + ahead);
      sought[i].batch->prefetch(ranks_[i] - std::min(ranks_[i], ahead + 1));
    }
}

/// An anchor that agrees with a probe.
struct Search::Near {
  const HeldBatch* held;
  std::size_t anchor, agreed;
  Batch::At place = {};
};

/// The anchors that agree best with a probe, the best first.
class Search::Neighbours {
 public:
  /// `ranks`: where the probe would stand in each batch.
  Neighbours(std::span<const HeldBatch* const> batches, std::span<const std::size_t> ranks,
             const Asked& asked, const Probe& probe)
      : typed_(asked.typed_since(probe)) {
    const std::string_view context = asked.context(probe);
    comparable_ = context.substr(context.rfind('\0') + 1);
    sides_.reserve(2 * batches.size() + 1);
    for (std::size_t i = 0; i < batches.size(); ++i) {
      push(batches[i], ranks[i], true);
      if (ranks[i] > 0) push(batches[i], ranks[i] - 1, false);
    }
  }

  /// The next ones that go on as was typed, and agree with the probe's context over `least` bytes.
  std::vector<Near> next(std::size_t most, std::size_t least) {
    std::vector<Near> found;
    found.reserve(most);
    while (!sides_.empty() && seen_ < kNeighboursMax && found.size() < most &&
           sides_.front().agreed >= least) {
      ++seen_;
      std::pop_heap(sides_.begin(), sides_.end());
      const Side side = sides_.back();
      sides_.pop_back();
      if (side.held->batch->text_from(side.anchor).starts_with(typed_))
        found.push_back({side.held, side.anchor, side.agreed});
      if (side.up || side.rank > 0)
        push(side.held, side.up ? side.rank + 1 : side.rank - 1, side.up);
    }
    return found;
  }

 private:
  /// The next neighbour of the probe's rank, on one side in one batch.
  struct Side {
    const HeldBatch* held;
    std::size_t rank, anchor, agreed;
    bool up;
    bool operator<(const Side& other) const { return agreed < other.agreed; }
  };

  void push(const HeldBatch* held, std::size_t rank, bool up) {
    const Batch& batch = *held->batch;
    if (rank >= batch.anchor_count()) return;
    batch.prefetch(up ? rank + kAhead : rank - std::min(rank, kAhead));
    const std::size_t anchor = batch.anchor(rank), agreed = batch.agreement(anchor, comparable_);
    if (agreed == 0) return;
    batch.prefetch_file(anchor);
    sides_.push_back({held, rank, anchor, agreed, up});
    std::push_heap(sides_.begin(), sides_.end());
  }

  std::string_view typed_, comparable_;
  std::vector<Side> sides_;  ///< a heap, the best at its front
  std::size_t seen_ = 0;
};

/// Each step is done for several anchors before the next one, so that they wait for memory together.
void Search::look_up() {
  std::span<const std::size_t> left = ranks_;
  std::size_t floor = 0;  // a match that agrees less is none of the best
  for (const Probe& probe : asked_.probes()) {
    Neighbours neighbours(batches_, left.first(batches_.size()), asked_, probe);
    left = left.subspan(batches_.size());
    while (true) {
      const std::size_t since = asked_.bytes_since(probe);
      std::vector<Near> found = neighbours.next(kTogether, floor - std::min(floor, since));
      if (found.empty()) break;
      for (Near& each : found) {
        each.place = each.held->batch->file_at(each.anchor);
        __builtin_prefetch(&each.held->states[each.place.file]);
        __builtin_prefetch(&each.held->batch->path(each.place.file));
      }
      for (const Near& each : found) add_from(each, probe);
      if (looked_up_.size() < kBatchMatchesMax) continue;
      keep_best(looked_up_, kBatchMatchesMax);
      floor = std::ranges::min(looked_up_, {}, &Match::agreed).agreed + 1;
    }
  }
}

void Search::add_from(const Near& near, const Probe& probe) {
  const HeldBatch& held = *near.held;
  const auto [file, at] = near.place;
  const HeldBatch::State state = held.states[file];
  if (state == HeldBatch::State::kRemoved || (&held == own_.held && file == own_.file)) return;
  const std::string& path = held.batch->path(file);
  if (state == HeldBatch::State::kChanged) {
    const auto changed = std::ranges::find(
        changed_, path, [](const ChangedFile& each) { return each.document.path; });
    if (changed != changed_.end()) add_from(*changed, at, probe);
    return;
  }
  add_looked_up(
      asked_.match(probe, held.batch->text(file), at, near.agreed), probe,
      {held.batch->text(file), Source::kProject, path, state == HeldBatch::State::kEdited});
}

/// Compares with the document, because the file's text before `place` may be other than its.
void Search::add_from(const ChangedFile& changed, std::size_t place, const Probe& probe) {
  const std::string_view text = changed.document.text;
  const auto at = changed.differences->moved(place);
  if (!at || *at > text.size()) return;
  const std::size_t agreed = common_suffix(asked_.context(probe), text.substr(0, *at));
  add_looked_up(asked_.match(probe, text, *at, agreed), probe, changed.document);
}

void Search::add_looked_up(std::optional<Match> match, const Probe& probe, const Scanned& from) {
  if (!match || match->agreed < least_agreed(probe)) return;
  match->source = from.source;
  match->path = from.path;
  match->edited = from.edited;
  looked_up_.push_back(*match);
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
      __builtin_prefetch(next.path.data());
    }
    asked_.judge(all[i]);
  }
  std::ranges::sort(all, [](const Match& a, const Match& b) { return a.weight > b.weight; });
  return all;
}

}  // namespace efimd::recall
