#pragma once

#include <vector>

#include "daemon/completion/generate/generate.h"

namespace efimd::completion {

/// The model's probabilities of setting.candidates, from the logits that the prompt's step left: one
/// entry for each, also if nothing is known of it.
///
/// The draft is a path of tokens, with the logits before each and after the last. A candidate is judged
/// as far as it follows that path, and up to the token at which it leaves it. So all of them are judged
/// in one step, and only the draft's tokens cost anything. Where typed tokens may be healed, a
/// candidate is spelled anew from there, because a word that is cut at the cursor looks unlikely.
///
/// Thread: engine. Call it after the prompt's prefill() and before the sequence is rewound.
std::vector<std::vector<JudgedToken>> judge_candidates(const GenerationSetting& setting,
                                                       engine::SequenceId sequence);

}  // namespace efimd::completion
