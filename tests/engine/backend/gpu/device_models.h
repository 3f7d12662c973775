#pragma once

#include <functional>
#include <memory>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "tests/engine/backend/varieties.h"

namespace efimd::test {

/// Opens a device; null where there is none.
using OpenDevice = std::function<std::unique_ptr<engine::gpu::GpuDevice>()>;

/// A tiny model's logits on the device are the scalar CPU's within `share` of their root mean square, and the same bit
/// for bit however the prompt is cut into steps.
void check_logits(Variety variety, engine::TensorType type, double share, const OpenDevice& open);
/// All architectures in F32 and Q8_0.
void check_architectures(const OpenDevice& open);

/// `tokens` greedy tokens behind a prompt: the device's choice at each place is the CPU's, or a near tie: the CPU's logits
/// of both differ by less than `tie` of their root mean square. Near ties are told in a line. The text goes on with the
/// CPU's choice.
void check_greedy(const Variety& variety, engine::TensorType type, int tokens, double tie,
                  const OpenDevice& open);
/// The same of two devices that hold one model.
void compare_greedy(engine::Backend& cpu, engine::Backend& device, const engine::ModelShape& shape,
                    int tokens, double tie);

/// Pages on their way: what is written is what later steps and reads find, what is read is what stands there then.
void check_pages(const OpenDevice& open);

}  // namespace efimd::test
