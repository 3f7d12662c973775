#include "daemon/completion/answer/verdicts.h"

#include <optional>
#include <string>
#include <utility>

namespace efimd::completion {

void note_verdict(Taste& taste, Turn& turn) {
  std::optional<Shown>& shown = turn.document.last->shown;
  if (!shown || shown->chance <= 0) return;
  const std::string language = language_of(turn.request());
  const Event event = turn.receipt.event;
  if (event == Event::kRepeat) return;
  const bool typed = event == Event::kType || event == Event::kNewline;
  if (typed && agrees(shown, turn.snapshot().bytes(), turn.cursor)) {
    // Each key of it is a request; the suggestion counts once.
    if (!std::exchange(shown->is_judged, true))
      taste.note(language, Verdict::kTypedThrough, shown->chance);
    return;
  }
  if (std::exchange(shown->is_judged, true)) return;
  taste.note(language,
             event == Event::kAccept ? Verdict::kAccepted
             : typed                 ? Verdict::kRejected
                                     : Verdict::kIgnored,
             shown->chance);
}

void note_dismissed(Taste& taste, const DocumentState& document, const text::Snapshot& snapshot) {
  if (!document.asked || !document.last || !document.last->shown) return;
  const Shown& shown = *document.last->shown;
  if (document.last->serial == snapshot.serial() && !shown.is_judged && shown.chance > 0)
    taste.note(language_of(*document.asked), Verdict::kRejected, shown.chance);
}

}  // namespace efimd::completion
