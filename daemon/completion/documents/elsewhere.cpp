#include "daemon/completion/documents/elsewhere.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "daemon/context/edits.h"

namespace efimd::completion {

namespace {

bool may_be_shown(const DocumentState& document, const SessionMemory& memory) {
  return document.open && document.snapshot && !document.home.path.empty() &&
         (!memory.stores() || document.source != engine::SourceId::kNone);
}

/// Whether prompts of the document show the place anyway.
bool is_in_window(const context::EditedPlace& place, const prompt::Spine& spine) {
  return spine.tokens().empty() || (place.end >= spine.begin() && place.begin <= spine.end());
}

}  // namespace

struct Elsewhere::Edited {
  std::uint64_t order = 0;
  std::string uri;
  context::Slot slot;
};

std::vector<Elsewhere::Edited> Elsewhere::edited_by_age(const DocumentState& document) {
  std::vector<Edited> edited;
  documents_.for_each([&](const DocumentKey& key, const DocumentState& other) {
    if (!may_be_shown(other, memory_) || other.home.project != document.home.project) return;
    for (const context::EditedPlace& place : other.edited.places()) {
      if (&other == &document && is_in_window(place, document.spine)) continue;
      std::string lines = context::edited_lines(place, *other.snapshot);
      if (!lines.empty())
        edited.push_back({place.order, key.uri, {other.file.path, std::move(lines), {}, ""}});
    }
  });
  std::ranges::sort(edited, {}, &Edited::order);
  return edited;
}

void Elsewhere::choose(DocumentState& document) {
  std::vector<engine::TokenId> tokens;
  if (may_be_shown(document, memory_)) {
    std::vector<context::Slot> slots;
    std::vector<std::string> uris;
    for (Edited& each : edited_by_age(document)) {
      slots.push_back(std::move(each.slot));
      uris.push_back(std::move(each.uri));
    }
    const int most = std::min(kEditTokensMax, engine_.window_tokens() / kEditShare);
    tokens = prompt::edited_texts(slots, static_cast<std::size_t>(most), engine_.tokenizer());
    if (!tokens.empty()) memory_.note_shown(document, uris);
  }
  const bool turned = tokens.empty() != document.edits.empty();
  document.edits = std::move(tokens);
  if (turned) document.judge_heads();
}

}  // namespace efimd::completion
