#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "daemon/completion/documents/documents.h"
#include "daemon/prompt/choose.h"
#include "daemon/text/document.h"
#include "engine/engine.h"

namespace efimd::completion {

/// The place of a wanted completion, and the cost that prompts may have there.
struct PlanPlace {
  const text::Snapshot& snapshot;
  std::size_t cursor = 0;  ///< on a code point border
  const engine::Engine& engine;
  const Documents& documents;
  const prompt::Windows& windows;
  const prompt::StepCosts& costs;
};

/// The plans that could serve the place, each with its cost: the document's anchors first, then new
/// ones of every view. An anchor of a full view whose KV is there makes new ones idle: they are not
/// looked at then. At least one. Follows the document's spine to the place where new ones are made.
std::vector<prompt::Candidate> possible_plans(const PlanPlace& place, DocumentState& document);

/// The plan of a new anchor of that view for the document's cursor, which is known. Of a wide view it
/// keeps the hole of a narrower stage that is there, so that only more of after is to be evaluated.
prompt::Plan new_plan(prompt::View view, DocumentState& document,
                      const engine::Tokenizer& tokenizer);

/// Whether an anchor of the first window or better serves a cursor in the text that was asked about,
/// whatever of it is in KV.
bool is_served(const DocumentState& document, std::size_t cursor,
               const engine::Tokenizer& tokenizer);

/// Tokens of `tokens` that are not in KV, at least one: the sequence's own count, and what is
/// resident of others'.
int tokens_missing(const engine::Engine& engine, const KeptAnchor* kept,
                   std::span<const engine::TokenId> tokens);

}  // namespace efimd::completion
