#include "daemon/prompt/anchor.h"

#include <string_view>
#include <utility>

namespace efimd::prompt {

namespace {

/// Moves the anchor's offsets over one edit and says whether before or after was touched. Text
/// inserted at either border of the hole is in the hole: that is where the user types. Text inserted
/// at the window's begin belongs to the window.
void move(Anchor& anchor, const text::Edit& edit) {
  const std::size_t edit_end = edit.begin + edit.removed;
  const std::size_t growth = edit.inserted - edit.removed;  // modulo 2^64, as the sums below
  if (edit.begin >= anchor.cut && edit_end <= anchor.resume) {
    anchor.resume += growth;
    anchor.window_end += growth;
  } else if (edit.begin >= anchor.window_end) {
    return;
  } else if (edit_end <= anchor.window_begin && edit.begin < anchor.window_begin) {
    anchor.window_begin += growth;
    anchor.cut += growth;
    anchor.resume += growth;
    anchor.window_end += growth;
  } else if (edit.begin >= anchor.window_begin && edit_end <= anchor.cut) {
    anchor.state = Anchor::State::kStale;
    anchor.cut += growth;
    anchor.resume += growth;
    anchor.window_end += growth;
  } else if (edit.begin >= anchor.resume && edit_end <= anchor.window_end) {
    anchor.state = Anchor::State::kStale;
    anchor.window_end += growth;
  } else {
    anchor.state = Anchor::State::kLost;
  }
}

/// Whether `tokens` spell `text`. Says no at the first byte that differs.
bool spell(const std::vector<engine::TokenId>& tokens, std::string_view text,
           const engine::Tokenizer& tokenizer) {
  for (const engine::TokenId token : tokens) {
    const std::string_view bytes = tokenizer.bytes(token);
    if (!text.starts_with(bytes)) return false;
    text.remove_prefix(bytes.size());
  }
  return text.empty();
}

bool spells(const Anchor& anchor, const text::Snapshot& snapshot,
            const engine::Tokenizer& tokenizer) {
  const std::string_view text = snapshot.bytes();
  if (anchor.window_end > text.size()) return false;
  const auto between = [&](std::size_t begin, std::size_t end) {
    return text.substr(begin, end - begin);
  };
  return spell(anchor.before, between(anchor.window_begin, anchor.cut), tokenizer) &&
         spell(anchor.after, between(anchor.resume, anchor.window_end), tokenizer);
}

}  // namespace

void offer(Anchor& anchor, std::vector<CoveredToken> generated, int replaced) {
  anchor.offered_begin = 0;
  const std::size_t kept = anchor.increment.size() - static_cast<std::size_t>(replaced);
  for (std::size_t i = 0; i < kept; ++i) anchor.offered_begin += anchor.increment[i].bytes;
  anchor.offered = std::move(generated);
}

void follow(Anchor& anchor, const text::Snapshot& snapshot, const engine::Tokenizer& tokenizer) {
  const text::Snapshot::Since since = snapshot.edits_since(anchor.serial);
  anchor.serial = snapshot.serial();
  if (!since.complete) anchor.state = Anchor::State::kLost;
  for (const text::Edit& edit : since.edits) {
    if (anchor.state == Anchor::State::kLost) return;
    move(anchor, edit);
  }
  if (anchor.state == Anchor::State::kStale && !since.edits.empty() &&
      spells(anchor, snapshot, tokenizer))
    anchor.state = Anchor::State::kGood;
}

void rebase(Anchor& anchor, const text::Snapshot& snapshot, const engine::Tokenizer& tokenizer) {
  anchor.serial = snapshot.serial();
  anchor.state = spells(anchor, snapshot, tokenizer) ? Anchor::State::kGood : Anchor::State::kLost;
}

}  // namespace efimd::prompt
