#pragma once

#include <vector>

#include "daemon/completion/answer/turn.h"
#include "daemon/completion/generate/generate.h"

namespace efimd::completion {

/// The shown part of the generated texts: each as far as the model was sure, fitted to the text
/// around the cursor. Texts that the user rejected here, and repetitions, are left out. Writes the
/// confidence of the first into the receipt. Fails with the reason why the first has nothing to
/// show.
///
/// Thread: engine.
Or<std::vector<Item>> shape(Turn& turn, const std::vector<Generated>& generated);

}  // namespace efimd::completion
