#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "tests/engine/backend/varieties.h"

namespace efimd::test {

/// Opens a device; null where there is none.
using OpenDevice = std::function<std::unique_ptr<engine::gpu::GpuDevice>()>;

/// A tiny model's logits on the device are the scalar CPU's, with KV of that type on both, within `share` of their root
/// mean square, and the same bit for bit however the prompt is cut into steps.
void check_logits(Variety variety, engine::TensorType type, double share, const OpenDevice& open,
                  engine::KvType kv_type = engine::KvType::kF16);
/// All architectures in F32 and Q8_0; with 8-bit KV in F32.
void check_architectures(const OpenDevice& open, engine::KvType kv_type = engine::KvType::kF16);

/// `tokens` greedy tokens behind a prompt: the device's choice at each place is the CPU's, or a near tie: the CPU's logits
/// of both differ by less than `tie` of their root mean square. Near ties are told in a line. The text goes on with the
/// CPU's choice.
void check_greedy(const Variety& variety, engine::TensorType type, int tokens, double tie,
                  const OpenDevice& open, engine::KvType kv_type = engine::KvType::kF16);
/// The same of two devices that hold one model.
void compare_greedy(engine::Backend& cpu, engine::Backend& device, const engine::ModelShape& shape,
                    int tokens, double tie);

/// In what a model and its KV are held.
struct Held {
  engine::TensorType weights;
  engine::KvType kv;
};
/// Both devices give these architectures' logits, in steps of several sizes, the same bits.
void check_same_logits(std::span<const Variety> architectures, std::span<const Held> held,
                       const OpenDevice& one, const OpenDevice& other);

/// A device fuses products of few tokens with what stands around them, and gives, with every type of weights, the logits that
/// it has in a prompt, bit for bit. For devices that multiply halves.
void check_fused_products(const OpenDevice& open);
/// Which steps of one and of two tokens a device fuses, of a layer with 192 pairs of rows in its heads and 256 in its gates.
struct FusedSteps {
  bool heads_of_one, heads_of_two, gates_of_one, gates_of_two;
  bool operator==(const FusedSteps&) const = default;
};
FusedSteps fused_steps(const OpenDevice& open);

/// Pages on their way: what is written is what later steps and reads find, what is read is what stands there then.
void check_page_transfer(const OpenDevice& open);
/// Pages of a sequence that is longer than one split of attention go to another device of the kind, and what is
/// evaluated behind them there, and behind a copied page, has the same bits. Their size is that of the type.
void check_pages(const OpenDevice& open, engine::KvType kv_type);
/// Rows of two sequences in one step have the bits that each has alone.
void check_sequences_together(const OpenDevice& open, engine::KvType kv_type);
/// A sequence whose table names a page many times, and so is longer than the device's pages, has the KV that it has on a
/// device of more pages.
void check_repeated_pages(const OpenDevice& open);
/// check_device() finds nothing in a device that computes as the CPU does, for any architecture and type of weights.
void check_right_devices(const OpenDevice& open);
/// It finds whichever operation a device leaves out.
void check_wrong_devices(const OpenDevice& open);
/// A bias of hundreds on some elements of keys, as Qwen2 has, costs 8-bit KV no more than one of f16.
void check_huge_key_bias(const OpenDevice& open);

}  // namespace efimd::test
