#pragma once

#include "tests/engine/backend/gpu/device_models.h"

namespace efimd::test {

/// A model that does not fit the device has its first layers there and the others on the CPU. Its
/// logits are the scalar CPU's, the same bit for bit for any cut of the prompt, and its pages go
/// out and back. If not one layer fits, it is refused.
void check_split(const OpenDevice& open);

}  // namespace efimd::test
