#include "daemon/completion/documents.h"

#include <algorithm>
#include <tuple>

namespace efimd::completion {

Documents::Documents(engine::Engine& engine, std::size_t documents_max)
    : engine_(engine), documents_max_(std::max<std::size_t>(documents_max, 1)) {}

Documents::~Documents() {
  for (auto& [key, state] : states_) drop_sequence(state);
}

DocumentState& Documents::use(const DocumentKey& document) {
  DocumentState& state = states_[document];
  state.used = ++uses_;
  state.used_at = std::chrono::steady_clock::now();
  while (states_.size() > documents_max_) {
    const auto out = first_out(state);
    drop_sequence(out->second);
    const std::uint64_t session = out->first.session;
    states_.erase(out);
    const auto next = states_.lower_bound({session, {}});
    if (next == states_.end() || next->first.session != session) current_.erase(session);
  }
  return state;
}

Documents::States::iterator Documents::first_out(const DocumentState& but) {
  return std::ranges::min_element(states_, {}, [&](const auto& entry) {
    const DocumentState& state = entry.second;
    return std::tuple(&state == &but, state.open, state.used);
  });
}

void Documents::close(const DocumentKey& document) {
  const auto found = states_.find(document);
  if (found == states_.end()) return;
  found->second.open = false;
  found->second.last.reset();
}

bool Documents::is_current(const DocumentKey& document) const {
  const auto found = current_.find(document.session);
  return found == current_.end() || found->second == document.uri;
}

void Documents::set_current(const DocumentKey& document) {
  current_[document.session] = document.uri;
}

engine::SequenceId Documents::sequence_of(DocumentState& state) {
  if (!state.sequence) state.sequence = engine_.open_sequence();
  return *state.sequence;
}

void Documents::drop_sequence(DocumentState& state) {
  if (state.sequence) engine_.close_sequence(*state.sequence);
  state.sequence.reset();
}

bool Documents::make_room(const DocumentState& but) {
  DocumentState* oldest = nullptr;
  for (auto& [key, state] : states_) {
    if (&state == &but || !state.sequence) continue;
    if (oldest == nullptr ||
        std::tuple(state.open, state.used) < std::tuple(oldest->open, oldest->used))
      oldest = &state;
  }
  if (oldest == nullptr) return false;
  drop_sequence(*oldest);
  return true;
}

std::vector<Documents::Row> Documents::rows() const {
  std::vector<Row> rows;
  for (const auto& [key, state] : states_) {
    Row row;
    row.file.uri = key.uri;
    row.file.open = state.open;
    row.file.anchors = state.anchor ? 1 : 0;
    if (state.sequence)
      row.file.tokens_device = static_cast<int>(engine_.held(*state.sequence).size());
    row.file.hits = state.hits;
    row.file.misses = state.misses;
    row.used_at = state.used_at;
    rows.push_back(std::move(row));
  }
  return rows;
}

bool spells(const prompt::Anchor& anchor, const text::Snapshot& snapshot,
            const engine::Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  if (anchor.window_end > text.size()) return false;
  const auto between = [&](std::size_t begin, std::size_t end) {
    return text.substr(begin, end - begin);
  };
  return tokenizer.decode(anchor.before) == between(anchor.window_begin, anchor.cut) &&
         tokenizer.decode(anchor.after) == between(anchor.resume, anchor.window_end);
}

}  // namespace efimd::completion
