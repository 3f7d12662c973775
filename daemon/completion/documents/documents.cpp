#include "daemon/completion/documents/documents.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <tuple>

#include "daemon/prompt/path_head.h"

namespace efimd::completion {

namespace {

using Tokens = std::span<const engine::TokenId>;

/// How many leading tokens are the same. In blocks, because every document is looked at before each
/// answer, and one by one nine sequences of a GPU's window took 0.3 ms.
std::size_t shared_tokens(Tokens a, Tokens b) {
  constexpr std::size_t kBlock = 64;
  const std::size_t most = std::min(a.size(), b.size());
  std::size_t same = 0;
  while (same + kBlock <= most && std::equal(&a[same], &a[same] + kBlock, &b[same])) same += kBlock;
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

/// Tokens of KV that a document's sequences hold; what they share counts once. Sequences share whole
/// leading parts, so that a token is new from where it differs from every sequence before it.
int tokens_of(const std::vector<Tokens>& sequences) {
  std::size_t total = 0;
  for (std::size_t at = 0; at < sequences.size(); ++at) {
    std::size_t shared = 0;
    for (std::size_t other = 0; other < at; ++other)
      shared = std::max(shared, shared_tokens(sequences[at], sequences[other]));
    total += sequences[at].size() - shared;
  }
  return static_cast<int>(total);
}

bool shows_others(const prompt::Anchor& anchor) {
  return anchor.path.other_files > 0 || !anchor.edits.empty();
}

}  // namespace

Documents::Documents(engine::Engine& engine, std::size_t documents_max)
    : engine_(engine), documents_max_(std::max<std::size_t>(documents_max, 1)) {}

Documents::~Documents() {
  for (auto& [key, state] : states_) drop(state);
}

DocumentState& Documents::use(const DocumentKey& document, const prompt::FileName& file) {
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  const auto [found, fresh] = states_.try_emplace(document, tokenizer, file);
  DocumentState& state = found->second;
  if (fresh) state.visit = visits_;
  state.used = ++uses_;
  state.used_at = std::chrono::steady_clock::now();
  while (states_.size() > documents_max_) erase(first_out(state));
  return state;
}

Documents::States::iterator Documents::erase(States::iterator document) {
  drop(document->second);
  const std::uint64_t session = document->first.session;
  const auto next = states_.erase(document);
  const auto other = states_.lower_bound({session, {}});
  if (other == states_.end() || other->first.session != session) current_.erase(session);
  return next;
}

const DocumentState* Documents::find(const DocumentKey& document) const {
  const auto found = states_.find(document);
  return found == states_.end() ? nullptr : &found->second;
}

DocumentState* Documents::find_open(const DocumentKey& document) {
  const auto found = states_.find(document);
  return found == states_.end() || !found->second.open ? nullptr : &found->second;
}

void Documents::follow(DocumentState& state, const text::Snapshot& snapshot) {
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  for (KeptAnchor& kept : state.anchors) {
    if (state.open) {
      prompt::follow(kept.anchor, snapshot, tokenizer);
    } else {
      prompt::rebase(kept.anchor, snapshot, tokenizer);
    }
  }
  // A text that was closed is another one when it is opened again; its versions count from 1.
  if (!state.open) {
    const std::size_t begin = state.spine.begin(), end = state.spine.end();
    state.spine = prompt::Spine(tokenizer, state.newest_path());
    if (end > begin) state.spine.start(snapshot, begin, end);  // its pages may still be there
    state.first_spine = prompt::Spine(tokenizer, state.first_spine.path());
    state.coming.reset();
    state.suggestions.clear();
    state.asked.reset();
    state.edited = {};
    state.head_asked = 0;
  }
  state.open = true;
  drop_lost(state);
}

void Documents::show_head(DocumentState& state, const context::Head& head, std::size_t tokens_max) {
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  prompt::PathHead path = prompt::path_head(state.file, head, tokens_max, tokenizer);
  state.head_files.clear();
  for (const context::Slot& slot : head.slots)
    if (state.head_files.size() < static_cast<std::size_t>(path.other_files))
      state.head_files.push_back(slot.path + " (" + slot.why + ")");
  if (path == state.newest_path()) return;
  state.coming.reset();
  if (state.anchors.empty())
    state.spine = prompt::Spine(tokenizer, std::move(path));
  else if (path != state.spine.path())
    state.coming.emplace(tokenizer, std::move(path));
  state.judge_heads();
}

void Documents::drop_lost(DocumentState& state) {
  std::erase_if(state.anchors, [this](KeptAnchor& kept) {
    const bool lost = kept.anchor.state == prompt::Anchor::State::kLost;
    if (lost) drop_sequence(kept);
    return lost;
  });
}

Documents::States::iterator Documents::first_out(const DocumentState& but) {
  return std::ranges::min_element(states_, {}, [&](const auto& entry) {
    const DocumentState& state = entry.second;
    return std::tuple(&state == &but, state.open, state.until(state.visit), state.used);
  });
}

void Documents::close(const DocumentKey& document) {
  const auto found = states_.find(document);
  if (found == states_.end()) return;
  DocumentState& state = found->second;
  state.open = false;
  state.closed_at = std::chrono::steady_clock::now();
  state.last.reset();
  state.rejections = {};
  state.suggestions.clear();
  // Its anchors and pages are kept for when it is opened again, but not its text.
  state.snapshot.reset();
  state.asked.reset();
}

void Documents::focus(const DocumentKey& document) {
  if (const auto found = states_.find(document); found != states_.end())
    found->second.used = ++uses_;
}

void Documents::dismiss(const DocumentKey& document, const text::Snapshot& snapshot) {
  const auto found = states_.find(document);
  if (found == states_.end() || !found->second.last) return;
  LastRequest& last = *found->second.last;
  found->second.rejections.dismiss(last, snapshot);
  // What became of it is known now, and counts once.
  if (last.shown && last.serial == snapshot.serial()) last.shown->is_judged = true;
  found->second.shown.reset();
}

bool Documents::is_current(const DocumentKey& document) const {
  const auto found = current_.find(document.session);
  return found == current_.end() || found->second == document.uri;
}

bool Documents::set_current(const DocumentKey& document) {
  return std::exchange(current_[document.session], document.uri) != document.uri;
}

void Documents::visited(DocumentState& state, int longer) {
  state.visit = ++visits_;
  state.longer = longer;
}

KeptAnchor& Documents::keep(DocumentState& state, const prompt::Plan& plan, int remembered) {
  std::vector<KeptAnchor>& anchors = state.anchors;
  if (remembered < 0) {
    limit(state);
    const auto sequence = start(state, plan);
    anchors.emplace(anchors.begin());
    anchors.front().sequence = sequence;
  } else {
    std::rotate(anchors.begin(), anchors.begin() + remembered, anchors.begin() + remembered + 1);
  }
  return take(state, anchors.front(), plan);
}

KeptAnchor& Documents::take(const DocumentState& state, KeptAnchor& kept,
                            const prompt::Plan& plan) {
  kept.anchor = plan.anchor;
  state.judge_head(kept.anchor);
  kept.used = ++uses_;
  kept.visit = state.visit;
  set_sources(state, sequence_of(kept), shows_others(plan.anchor));
  return kept;
}

KeptAnchor& Documents::add_behind(DocumentState& state, const prompt::Plan& plan) {
  limit(state);
  const auto sequence = start(state, plan);
  const auto at = state.anchors.begin() + (state.anchors.empty() ? 0 : 1);
  KeptAnchor& kept = *state.anchors.emplace(at);
  kept.sequence = sequence;
  return take(state, kept, plan);
}

Documents::Start Documents::best_start(const DocumentState& state,
                                       std::span<const engine::TokenId> tokens) const {
  constexpr int kTokensMin = 8;
  Start best;
  const auto look = [&](const std::optional<engine::SequenceId>& sequence) {
    if (!sequence) return;
    const std::span<const engine::TokenId> held = engine_.held(*sequence);
    const auto common = static_cast<int>(std::ranges::mismatch(held, tokens).in1 - held.begin());
    if (common >= kTokensMin && common > best.tokens) best = {sequence, common};
  };
  look(state.spine_sequence);
  for (const KeptAnchor& kept : state.anchors) look(kept.sequence);
  return best;
}

std::optional<engine::SequenceId> Documents::start(const DocumentState& state,
                                                   const prompt::Plan& plan) {
  const Start best = best_start(state, plan.tokens);
  if (!best.sequence) return std::nullopt;
  const Result<engine::SequenceId> fork = engine_.fork(*best.sequence);
  return fork ? std::optional(*fork) : std::nullopt;
}

void Documents::limit(DocumentState& state) {
  if (state.anchors.size() < kAnchorsMax) return;
  drop_sequence(state.anchors.back());
  state.anchors.pop_back();
}

engine::SequenceId Documents::spine_sequence_of(DocumentState& state) {
  if (!state.spine_sequence) {
    state.spine_sequence = engine_.open_sequence();
    set_sources(state, *state.spine_sequence, state.spine.path().other_files > 0);
  }
  return *state.spine_sequence;
}

void Documents::set_sources(const DocumentState& state, engine::SequenceId sequence,
                            bool shows_others) {
  engine_.set_source(sequence, state.source);
  if (shows_others) engine_.set_shown(sequence, state.shown_sources);
}

std::vector<DocumentState*> Documents::open_by_use() {
  std::vector<DocumentState*> open;
  for (auto& [key, state] : states_)
    if (state.open) open.push_back(&state);
  std::ranges::sort(open, std::greater<>(), &DocumentState::used);
  return open;
}

engine::SequenceId Documents::sequence_of(KeptAnchor& kept) {
  if (!kept.sequence) kept.sequence = engine_.open_sequence();
  return *kept.sequence;
}

void Documents::forget_if(
    const std::function<bool(const DocumentKey&, const DocumentState&)>& unwanted) {
  for (auto at = states_.begin(); at != states_.end();)
    at = unwanted(at->first, at->second) ? erase(at) : std::next(at);
}

void Documents::for_each(const std::function<void(const DocumentKey&, DocumentState&)>& visit) {
  for (auto& [key, state] : states_) visit(key, state);
}

void Documents::drop_sequence(KeptAnchor& kept) {
  if (kept.sequence) engine_.close_sequence(*kept.sequence);
  kept.sequence.reset();
}

void Documents::drop(DocumentState& state) {
  for (KeptAnchor& kept : state.anchors) drop_sequence(kept);
  if (state.spine_sequence) engine_.close_sequence(*state.spine_sequence);
  state.spine_sequence.reset();
}

void Documents::drop_if(DocumentState& state,
                        const std::function<bool(const KeptAnchor&)>& superfluous) {
  if (state.anchors.empty()) return;
  const auto end =
      std::stable_partition(state.anchors.begin() + 1, state.anchors.end(),
                            [&](const KeptAnchor& kept) { return !superfluous(kept); });
  for (auto at = end; at != state.anchors.end(); ++at) drop_sequence(*at);
  state.anchors.erase(end, state.anchors.end());
}

bool Documents::make_room(const KeptAnchor& but, const DocumentState* spare) {
  std::optional<engine::SequenceId>* first = nullptr;
  std::tuple<bool, bool, std::uint64_t, std::uint64_t> first_rank;
  const auto look = [&](std::optional<engine::SequenceId>& sequence, const DocumentState& state,
                        std::uint64_t visit, std::uint64_t used) {
    const std::tuple rank(state.open, visit == visits_, state.until(visit), used);
    if (!sequence || (first != nullptr && first_rank <= rank)) return;
    first = &sequence;
    first_rank = rank;
  };
  for (auto& [key, state] : states_) {
    if (&state == spare) continue;
    look(state.spine_sequence, state, state.visit, state.used);
    for (KeptAnchor& kept : state.anchors)
      if (&kept != &but) look(kept.sequence, state, kept.visit, kept.used);
  }
  if (first == nullptr) return false;
  engine_.close_sequence(**first);
  first->reset();
  return true;
}

int Documents::tokens_held(const DocumentState& state) const {
  std::vector<Tokens> sequences;
  for (const KeptAnchor& kept : state.anchors)
    if (kept.sequence) sequences.push_back(engine_.held(*kept.sequence));
  if (state.spine_sequence) sequences.push_back(engine_.held(*state.spine_sequence));
  return tokens_of(sequences);
}

std::vector<Documents::Row> Documents::rows() const {
  std::vector<Row> rows;
  for (const auto& [key, state] : states_) {
    Row row;
    row.file.uri = key.uri;
    row.file.open = state.open;
    row.file.anchors = static_cast<int>(state.anchors.size());
    row.file.tokens_device = tokens_held(state);
    row.file.hits = state.hits;
    row.file.misses = state.misses;
    row.used_at = state.used_at;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace efimd::completion
