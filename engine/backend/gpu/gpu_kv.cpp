#include "engine/backend/gpu/gpu_kv.h"

#include <cmath>

namespace efimd::engine::gpu {

std::size_t layer_page_bytes(const ModelShape& shape, KvType type) {
  const auto width = static_cast<std::size_t>(shape.head_width);
  const std::size_t quants = (width + 3) / 4;
  const std::size_t scales = ((width + 31) / 32 + 1) / 2;
  const std::size_t token_words = type == KvType::kQ8 ? quants + scales : width / 2;
  return 2 * static_cast<std::size_t>(shape.kv_heads) * kPageTokens * token_words * 4;
}

std::vector<float> bias_turns(const ModelShape& shape, std::span<const double> frequencies,
                              int pages) {
  std::vector<float> turns;
  turns.reserve(2 * frequencies.size() * static_cast<std::size_t>(kPageTokens + pages));
  const auto add = [&](double angle, double magnitude) {
    turns.push_back(static_cast<float>(magnitude * std::cos(angle)));
    turns.push_back(static_cast<float>(magnitude * std::sin(angle)));
  };
  for (const double frequency : frequencies)
    for (int slot = 0; slot < kPageTokens; ++slot)
      add(slot * frequency, static_cast<double>(shape.rope_magnitude));
  for (int page = 0; page < pages; ++page)
    for (const double frequency : frequencies) add(page * kPageTokens * frequency, 1.0);
  return turns;
}

void set_attention(Operation& operation, kernels::Kv form, const kernels::AttentionSizes& sizes,
                   const DeviceLimits& limits) {
  operation.kernel = Kernel::kAttention;
  operation.type = kernels::attention_type(form, sizes.head_width);
  operation.set_sizes(sizes);
  operation.groups = {sizes.tokens, sizes.heads, sizes.splits};
  if (limits.shared_attention_min == 0) return;
  const std::uint32_t rows = sizes.tokens * (sizes.heads / sizes.kv_heads);
  const std::uint32_t tile = kernels::attention_tile(operation.type);
  const std::uint32_t tiles = (rows + tile - 1) / tile;
  operation.many = rows > 1 && tiles * sizes.kv_heads * sizes.splits >= limits.shared_attention_min;
  operation.groups = {operation.many ? tiles : rows, sizes.kv_heads, sizes.splits};
}

}  // namespace efimd::engine::gpu
