#pragma once

#include "base/error.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/model/model.h"

namespace efimd::engine {

/// Whether a device computes what the CPU does. Otherwise a wrong driver, compiler or card would
/// only be seen by nonsense in its completions.
///
/// Compares x after the model's first layer, for tokens in steps of several sizes and for some one
/// by one. For the last tokens it also compares logits of the vocabulary's first tokens.
/// kUnsupported if x or logits of half of the tokens differ by more than a tenth of their size.
/// Rounding is far below that, and a near tie between experts moves few tokens.
///
/// Call it before the first sequence is opened, because it writes page 0. Thread: engine. Fails as
/// the device does. Skipped if the CPU lacks memory for the comparison.
Result<void> check_device(Backend& device, const ModelShape& shape, const ModelWeights& weights,
                          const CpuOptions& cpu, gpu::WithOutput with_output);

}  // namespace efimd::engine
