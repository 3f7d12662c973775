#pragma once

#include "daemon/completion/answer/plans.h"
#include "daemon/completion/documents/documents.h"

// What the daemon is compared with: the treatments that are not the usual one.
namespace efimd::completion {

/// The plan of a full view in `format`, for a document that keeps one anchor and its sequence: the
/// anchor's own while it serves (EFIM), else a new one in its place. Its cost is not looked at.
prompt::Candidate compared_plan(const PlanPlace& place, DocumentState& document,
                                Treatment::Format format);

/// Closes the document's sequences and drops their pages, so that nothing of them is found again.
void forget_kv(DocumentState& document, Documents& documents, engine::Engine& engine);

}  // namespace efimd::completion
