#pragma once

#include "tests/engine/backend/gpu/device_models.h"

namespace efimd::test {

/// A model that does not fit the device has its first layers there and the others on the CPU: its logits are the scalar
/// CPU's, the same bit for bit however the prompt is cut, its pages go out and back, and where not one layer fits it is
/// refused.
void check_split(const OpenDevice& open);

}  // namespace efimd::test
