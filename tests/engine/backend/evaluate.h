#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "tests/engine/backend/memory_model.h"

namespace efimd::test {

/// The device over a model in memory, with 64 pages; a device that cannot be made fails the test.
std::unique_ptr<engine::Backend> device(const MemoryModel& model, engine::Isa isa, int threads,
                                        engine::KvType kv_type = engine::KvType::kF16);
/// All operations of a step but logits().
void forward_layers(engine::Backend& backend, const engine::Step& step, int layers);
std::vector<engine::TokenId> random_tokens(int count, int vocabulary, unsigned seed);
/// A page table that walks the 64 pages in an order of its own.
std::vector<engine::PageIndex> pages_from(engine::PageIndex first, engine::PageIndex step);
/// Logits of all positions, [T][V], evaluated in steps of the given sizes, repeated.
std::vector<float> evaluate(engine::Backend& backend, const MemoryModel& model,
                            const std::vector<engine::TokenId>& tokens,
                            const std::vector<int>& steps,
                            const std::vector<engine::PageIndex>& pages);
/// `types`, or kQ8_0 alone under ThreadSanitizer: threads do the same for each type.
std::span<const engine::TensorType> types_watched(std::span<const engine::TensorType> types);
/// Mean KL divergence of the softmax of `other` from that of `exact`, [T][V] each.
double mean_divergence(std::span<const float> exact, std::span<const float> other, int vocabulary);

}  // namespace efimd::test
