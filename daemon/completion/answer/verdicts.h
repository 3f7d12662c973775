#pragma once

#include "daemon/completion/answer/turn.h"
#include "daemon/completion/documents/taste.h"
#include "daemon/completion/request.h"

namespace efimd::completion {

/// Tells `taste` what became of the suggestion before the turn's, as the user's text shows it. Each
/// suggestion counts once.
void note_verdict(Taste& taste, Turn& turn);

/// The same of one that the user dismissed, if it is still on the screen.
void note_dismissed(Taste& taste, const DocumentState& document, const text::Snapshot& snapshot);

}  // namespace efimd::completion
