#include "daemon/completion/answer/recalled.h"

#include <string_view>
#include <utility>

#include "daemon/completion/fit/fit.h"

namespace efimd::completion {

namespace {

/// A draft's bytes: more than the model judges in one step is never used.
constexpr std::size_t kDraftBytesMax = 96;

recall::Where where_of(const TextHome& home) { return {home.project, home.path}; }

/// The longest leading part that is at least as likely as `least`, and its chance.
recall::Boundary likely_part(const recall::Candidate& candidate, double least) {
  recall::Boundary part;
  for (const recall::Boundary& boundary : candidate.boundaries)
    if (boundary.chance >= least) part = boundary;
  return part;
}

std::optional<Item> fitted(const recall::Candidate& candidate, std::size_t bytes,
                           const Turn& turn) {
  Fitted shown = fit(std::string_view(candidate.text).substr(0, bytes), turn.context());
  if (shown.text.empty()) return std::nullopt;
  if (turn.document.rejections.turned_down(turn.snapshot(), turn.cursor, shown.text))
    return std::nullopt;
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
  const recall::Query query{where_of(request.home), turn.snapshot().bytes(), turn.cursor,
                            recall::Reach::kLine};
  const double least = least_chance(request.options.eagerness);
  for (const recall::Candidate& candidate : index.find(query)) {
    if (recalled.draft.empty() && !candidate.boundaries.empty()) {
      recalled.draft = candidate.text.substr(0, kDraftBytesMax);
      recalled.draft_chance = candidate.boundaries.front().chance;
    }
    if (candidate.shown == 0) continue;
    const recall::Boundary part = likely_part(candidate, least);
    if (part.bytes == 0) continue;
    recalled.item = fitted(candidate, part.bytes, turn);
    if (!recalled.item) continue;
    recalled.chance = part.chance;
    break;
  }
  return recalled;
}

bool is_better(const Recalled& recalled, const std::vector<Item>& written,
               std::optional<double> confidence) {
  if (!recalled.item) return false;
  const auto gain = [](double chance, const Item& item) {
    return chance * static_cast<double>(item.text.size());
  };
  return gain(recalled.chance, *recalled.item) >= gain(confidence.value_or(0), written.front());
}

}  // namespace efimd::completion
