#pragma once

#include "base/error.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/gpu/gpu_weights.h"
#include "engine/model/model.h"

namespace efimd::engine {

/// Whether a device computes what the CPU does. A driver, a compiler or a card that computes otherwise shows in no other way
/// than by nonsense.
///
/// Compares x behind the model's first layer, of tokens in steps of several sizes and of some one by one, and the last ones'
/// logits of the vocabulary's first tokens. kUnsupported where x or logits of half of the tokens are off by more than a
/// tenth of their size: rounding is far below, and a near tie between experts moves few tokens.
/// Before the first sequence is opened: it writes page 0.
/// Thread: engine.  Fails as the device does; says nothing where the CPU has not the memory to compare.
Result<void> check_device(Backend& device, const ModelShape& shape, const ModelWeights& weights,
                          const CpuOptions& cpu, gpu::WithOutput with_output);

}  // namespace efimd::engine
