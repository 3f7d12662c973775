#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "daemon/completion/fit/cursor_context.h"
#include "daemon/completion/request.h"

namespace efimd::completion {

/// Options::confidence, but 0 without a stop rule, because then all of the model's text is wanted.
double least_confidence(const Options& options);

/// How likely the model thought one token of a generated text.
struct TokenChance {
  double probability = 0;
  std::size_t begin = 0;  ///< where its bytes begin in the text
};

/// A text as far as the model was sure of it.
struct Confident {
  std::size_t size = 0;   ///< bytes of the text that are kept
  double confidence = 0;  ///< product of the kept tokens' probabilities; if nothing is kept, of the
                          ///< first unit's
};

/// Keeps `text` whole if the product of all its tokens' probabilities is at least `least`.
/// Otherwise keeps it up to the last end of a unit at which the product was that large; that may be
/// nothing. `least` 0 keeps all.
Confident confident_part(std::string_view text, std::span<const TokenChance> chances,
                         const CursorContext& place, double least);

/// Whether the cursor's line may well be finished, to judge by a generated text: nothing follows the
/// cursor on it, and the first token has less than least_first_probability(). False where
/// Options::confidence is set, or without a stop rule.
bool may_be_finished(std::span<const TokenChance> chances, const CursorContext& place,
                     const Options& options);

/// Places at which a completion may end in good order: after a line, after ";", before ",", and
/// after the close of an open bracket or string. In prose, after a sentence or clause. Not inside a
/// bracket that the completion opened itself, unless that bracket ends its line.
std::vector<std::size_t> unit_ends(std::string_view text, const CursorContext& place);

}  // namespace efimd::completion
