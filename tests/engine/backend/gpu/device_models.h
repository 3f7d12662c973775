#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/gpu/gpu_device.h"
#include "tests/engine/backend/varieties.h"

namespace efimd::test {

/// Opens a device; null where there is none.
using OpenDevice = std::function<std::unique_ptr<engine::gpu::GpuDevice>()>;

/// The model on the device that `open` opens, in steps of at most 64 tokens; null if there is none.
std::unique_ptr<engine::Backend> on_device(const engine::ModelShape& shape,
                                           const engine::ModelWeights& weights,
                                           const OpenDevice& open, engine::KvType kv_type);
using Bytes = std::vector<std::byte>;
Bytes page_of(engine::Backend& backend, engine::PageIndex page);
/// The bytes of a page that nothing else writes, by `mark`.
Bytes marked_page(const engine::Backend& backend, int mark);

/// A tiny model's logits on the device are the scalar CPU's, with KV of that type on both, within
/// `share` of their root mean square. They are the same bit for bit for any cut of the prompt into
/// steps.
void check_logits(Variety variety, engine::TensorType type, double share, const OpenDevice& open,
                  engine::KvType kv_type = engine::KvType::kF16);
/// All architectures in F32 and Q8_0; with 8-bit KV in F32.
void check_architectures(const OpenDevice& open, engine::KvType kv_type = engine::KvType::kF16);

/// `tokens` greedy tokens after a prompt. The device's choice at each place is the CPU's, or a near
/// tie: the CPU's logits of both differ by less than `tie` of their root mean square. Near ties are
/// told in a line. The text goes on with the CPU's choice, and the device evaluates it in steps of 1 to 32 tokens.
void check_greedy(const Variety& variety, engine::TensorType type, int tokens, double tie,
                  const OpenDevice& open, engine::KvType kv_type = engine::KvType::kF16);
/// The same of two devices that hold one model.
void compare_greedy(engine::Backend& cpu, engine::Backend& device, const engine::ModelShape& shape,
                    int tokens, double tie);

/// The form of a model's weights and of its KV.
struct Held {
  engine::TensorType weights;
  engine::KvType kv;
};
/// Forms of a model that show whether two devices agree.
inline constexpr Held kHeld[] = {{engine::TensorType::kF16, engine::KvType::kF16},
                                 {engine::TensorType::kQ8_0, engine::KvType::kF16},
                                 {engine::TensorType::kQ8_0, engine::KvType::kQ8}};
/// Both devices give these architectures' logits, in steps of several sizes, the same bits.
void check_same_logits(std::span<const Variety> architectures, std::span<const Held> held,
                       const OpenDevice& one, const OpenDevice& other);

/// Pages on their way: later steps and reads find the written bytes, and a read gives the bytes of
/// that moment.
void check_page_transfer(const OpenDevice& open);
/// Pages of a sequence that is longer than one split of attention go to another device of the kind.
/// Tokens evaluated after them there, and after a copied page, have the same bits. Their size is
/// that of the type.
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
