#include "daemon/completion/documents/session_memory.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "daemon/prompt/planner.h"

namespace efimd::completion {

namespace {

Note note_of(const DocumentState& state) {
  Note note;
  if (state.last) note.cursor = state.last->cursor;
  if (state.snapshot) note.text_bytes = state.snapshot->bytes().size();
  // The widest that there is; a first window is soon evaluated again.
  const prompt::Spine& spine = state.spine.tokens().empty() ? state.first_spine : state.spine;
  note.window_begin = spine.begin();
  note.window_end = spine.end();
  for (const KeptAnchor& kept : state.anchors)
    if (kept.anchor.state == prompt::Anchor::State::kGood && note.anchors.size() < kNotedAnchorsMax)
      note.anchors.emplace_back(noted(kept.anchor)).has_head =
          kept.anchor.path == state.spine.path();
  if (state.spine.path().other_files > 0) {
    note.path = state.spine.path();
    note.files = state.shown_files;
  }
  return note;
}

/// Whether the tokens are the model's, and leave room for a text.
bool is_of(const engine::Engine& engine, const prompt::PathHead& path) {
  const auto is_token = [&](engine::TokenId id) { return id < engine.tokenizer().size(); };
  return path.size() < static_cast<std::size_t>(engine.window_tokens()) / 2 &&
         std::ranges::all_of(path.front, is_token) && std::ranges::all_of(path.inside, is_token);
}

}  // namespace

engine::SourceId SessionMemory::source_of(const DocumentKey& document, bool may_be_stored) const {
  if (!keeper_ || !may_be_stored || forgotten_.contains(document)) return engine::SourceId::kNone;
  return keeper_->source_of(document.uri);
}

void SessionMemory::open(const OpenedDocument& opened) {
  if (!keeper_ || !opened.may_be_stored) return;
  DocumentState& state = documents_.use(opened.document, opened.file);
  state.source = source_of(opened.document, true);
  keeper_->set_open(opened.document.uri, true);
  // Anchors that are there are of this daemon's own time, and better.
  if (!state.anchors.empty()) return;
  if (const auto note = parse_note(keeper_->note(opened.document.uri)))
    recall(*note, opened, state);
}

void SessionMemory::close(const DocumentKey& document) {
  forgotten_.erase(document);
  if (!keeper_) return;
  bool open_elsewhere = false;
  documents_.for_each([&](const DocumentKey& key, DocumentState& state) {
    if (key == document)
      note_place(key, state);
    else if (key.uri == document.uri)
      open_elsewhere |= state.open;
  });
  if (!open_elsewhere) keeper_->set_open(document.uri, false);
}

void SessionMemory::visit(const DocumentKey& document, DocumentState& state) {
  const bool known = keeper_ && state.source != engine::SourceId::kNone;
  const int longer = known ? keeper_->visit(document.uri) : 0;
  documents_.visited(state, longer);
  engine_.visited(state.source, longer);
}

void SessionMemory::recall(const Note& note, const OpenedDocument& opened, DocumentState& state) {
  const text::Snapshot& snapshot = *opened.snapshot;
  const engine::Tokenizer& tokenizer = engine_.tokenizer();
  prompt::Windows windows;
  windows.increment_max = std::numeric_limits<int>::max();
  const std::size_t cursor = utf8::floor(snapshot.bytes(), note.cursor);
  state.recalled_cursor = cursor;
  const auto grown = static_cast<std::ptrdiff_t>(snapshot.bytes().size()) -
                     static_cast<std::ptrdiff_t>(note.text_bytes);
  const bool had_head = note.path.size() > 0;
  if (had_head && shows_heads_ && is_of(engine_, note.path))
    state.spine = prompt::Spine(tokenizer, note.path);
  if (had_head && shows_heads_) note_shown(state, note.files);
  for (const NotedAnchor& each : note.anchors) {
    if (had_head && !shows_heads_ && each.has_head) continue;
    std::optional<prompt::Anchor> anchor = anchor_from(each, snapshot, 0, tokenizer);
    // Text that was typed last and not saved, or typed elsewhere, is usually at the cursor's old
    // place.
    if (!anchor && grown != 0) anchor = anchor_from(each, snapshot, grown, tokenizer);
    if (!anchor) continue;
    anchor->path = (each.has_head ? state.spine : state.first_spine).path();
    state.judge_head(*anchor);
    if (auto plan = prompt::continued(
            *anchor, snapshot, std::clamp(cursor, anchor->cut, anchor->resume), tokenizer, windows))
      want(std::move(plan->tokens), state.source);
    KeptAnchor kept;
    kept.anchor = std::move(*anchor);
    state.anchors.push_back(std::move(kept));
    if (state.anchors.size() == kAnchorsMax) break;
  }
  if (note.window_end > note.window_begin) {
    state.spine.start(snapshot, note.window_begin, note.window_end);
    want(prompt::spine_prompt(state.spine, tokenizer), state.source);
  }
}

void SessionMemory::want(std::vector<engine::TokenId> tokens, engine::SourceId source) {
  const auto most = static_cast<std::size_t>(engine_.window_tokens());
  if (tokens.size() > most) tokens.resize(most);
  if (!tokens.empty() && prompts_.size() < kPromptsMax)
    prompts_.push_back({std::move(tokens), source});
}

bool SessionMemory::restore_one(const std::stop_token& stop) {
  if (prompts_.empty()) return false;
  // If restoring fails, the tokens are evaluated when they are needed.
  static_cast<void>(engine_.restore(prompts_.front().tokens, prompts_.front().source, stop));
  if (!stop.stop_requested()) prompts_.pop_front();
  return true;
}

void SessionMemory::note_places() {
  if (!keeper_) return;
  documents_.for_each([&](const DocumentKey& document, DocumentState& state) {
    if (state.open) note_place(document, state);
  });
}

void SessionMemory::note_place(const DocumentKey& document, DocumentState& state) {
  if (state.source == engine::SourceId::kNone || state.noted == state.used) return;
  state.noted = state.used;
  if (!state.anchors.empty()) keeper_->set_note(document.uri, note_text(note_of(state)));
}

bool SessionMemory::write_pages(const std::stop_token& stop) {
  note_places();
  auto written = engine::WriteBehind::kWrote;
  while (!stop.stop_requested() && written == engine::WriteBehind::kWrote)
    written = engine_.write_behind(engine::Leaving::kNo);
  return stop.stop_requested() || written == engine::WriteBehind::kNothing;
}

void SessionMemory::write_last_pages(std::chrono::milliseconds time) {
  note_places();
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < deadline &&
         engine_.write_behind(engine::Leaving::kNo) == engine::WriteBehind::kWrote) {
  }
}

std::chrono::steady_clock::time_point SessionMemory::give_back_closed(
    std::chrono::milliseconds kept, const std::stop_token& stop) {
  const auto now = std::chrono::steady_clock::now();
  auto due = std::chrono::steady_clock::time_point::max();
  if (!engine_.gives_back()) return due;
  std::vector<engine::SourceId> others;
  documents_.forget_if([&](const DocumentKey&, const DocumentState& state) {
    if (!state.open && now - state.closed_at >= kept) return giving_back_ = true;
    if (!state.open) due = std::min(due, state.closed_at + kept);
    if (state.source != engine::SourceId::kNone) others.push_back(state.source);
    return false;
  });
  while (giving_back_ && !stop.stop_requested()) giving_back_ = engine_.give_back_some(others);
  return giving_back_ ? now : due;
}

void SessionMemory::note_shown(DocumentState& state, const std::vector<std::string>& uris) {
  for (const std::string& uri : uris) {
    if (std::ranges::find(state.shown_files, uri) != state.shown_files.end()) continue;
    state.shown_files.push_back(uri);
    if (keeper_ && state.source != engine::SourceId::kNone)
      state.shown_sources.push_back(keeper_->source_of(uri));
  }
}

void SessionMemory::forget(std::span<const std::string> uris) {
  std::map<std::string, engine::SourceId> unwanted;
  documents_.forget_if([&](const DocumentKey& document, const DocumentState& state) {
    const bool named = std::ranges::any_of(uris, [&](const std::string& uri) {
      return uri.empty() || document.uri == uri || document.uri.starts_with(uri + "/");
    });
    const bool shows =
        std::ranges::find_first_of(state.shown_files, uris) != state.shown_files.end();
    if (named && state.open) forgotten_.insert(document);
    if (shows && state.source != engine::SourceId::kNone)
      unwanted.emplace(document.uri, state.source);
    return named || shows;
  });
  prompts_.clear();
  // Pages of what is never stored are of no source.
  engine_.forget(engine::SourceId::kNone);
  if (!keeper_) return;
  for (const std::string& uri : uris) {
    keeper_->forget_returns(uri);
    unwanted.merge(keeper_->sources_below(uri));
  }
  // Also of documents that are not among those in memory any more, or not yet.
  unwanted.merge(keeper_->sources_showing(uris));
  keeper_->forget_notes_showing(uris);
  for (const auto& [known, source] : unwanted) {
    engine_.forget(source);
    keeper_->forget_note(known);
  }
}

}  // namespace efimd::completion
