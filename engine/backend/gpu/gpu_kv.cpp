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

std::vector<float> bias_rope_table(const ModelShape& shape, std::span<const double> frequencies,
                                   int pages) {
  std::vector<float> rope_table;
  rope_table.reserve(2 * frequencies.size() * static_cast<std::size_t>(kPageTokens + pages));
  const auto add = [&](double angle, double magnitude) {
    rope_table.push_back(static_cast<float>(magnitude * std::cos(angle)));
    rope_table.push_back(static_cast<float>(magnitude * std::sin(angle)));
  };
  for (const double frequency : frequencies)
    for (int slot = 0; slot < kPageTokens; ++slot)
      add(slot * frequency, static_cast<double>(shape.rope_magnitude));
  for (int page = 0; page < pages; ++page)
    for (const double frequency : frequencies) add(page * kPageTokens * frequency, 1.0);
  return rope_table;
}

}  // namespace efimd::engine::gpu
