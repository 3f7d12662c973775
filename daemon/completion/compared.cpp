#include "daemon/completion/compared.h"

#include <utility>

namespace efimd::completion {

prompt::Candidate compared_plan(const PlanPlace& place, DocumentState& document,
                                Treatment::Format format) {
  const engine::Tokenizer& tokenizer = place.engine.tokenizer();
  prompt::Candidate candidate;
  candidate.remembered = document.anchors.empty() ? -1 : 0;
  if (format == Treatment::Format::kPlainFim) {
    candidate.plan =
        prompt::plain(place.snapshot, place.cursor, document.spine, tokenizer, place.windows);
    return candidate;
  }
  if (!document.anchors.empty())
    if (auto kept = prompt::continued(document.anchors.front().anchor, place.snapshot, place.cursor,
                                      tokenizer, place.windows)) {
      candidate.plan = std::move(*kept);
      return candidate;
    }
  candidate.plan = prompt::anchored(prompt::View::kFull, place.snapshot, place.cursor,
                                    document.spine, tokenizer, place.windows);
  return candidate;
}

void forget_kv(DocumentState& document, Documents& documents, engine::Engine& engine) {
  // Pages are dropped by whose text they hold. No store stands behind a comparison, so that any
  // name will do.
  constexpr engine::SourceId kCompared{1};
  for (KeptAnchor& kept : document.anchors) {
    if (!kept.sequence) continue;
    engine.set_source(*kept.sequence, kCompared);
    documents.drop_sequence(kept);
  }
  engine.forget(kCompared);
}

}  // namespace efimd::completion
