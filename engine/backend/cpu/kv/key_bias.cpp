#include "engine/backend/cpu/kv/key_bias.h"

#include <cmath>

#include "engine/backend/rope_frequencies.h"

namespace efimd::engine::cpu {

KeyBias::KeyBias(const ModelShape& shape, std::span<const float> rope_factors,
                 const std::vector<std::span<const float>>& biases)
    : head_width_(shape.head_width),
      pairs_(shape.rope_width / 2),
      magnitude_(static_cast<double>(shape.rope_magnitude)),
      frequencies_(rope_frequencies(shape, rope_factors)) {
  for (const std::span<const float> bias : biases) add_layer(shape, bias);
}

void KeyBias::add_layer(const ModelShape& shape, std::span<const float> bias) {
  std::vector<float>& along = along_.emplace_back(bias.begin(), bias.end());
  std::vector<float>& across = across_.emplace_back(bias.size());
  if (bias.empty()) return;
  any_ = true;
  const bool adjacent = shape.rope_pairs == RopePairs::kAdjacent;
  for (int head = 0; head < shape.kv_heads; ++head) {
    for (int i = 0; i < pairs_; ++i) {
      const auto first = static_cast<std::size_t>(head * head_width_ + (adjacent ? 2 * i : i));
      const std::size_t second = first + static_cast<std::size_t>(adjacent ? 1 : pairs_);
      across[first] = -along[second];
      across[second] = along[first];
    }
  }
}

void KeyBias::prepare(int end) {
  if (!any_) return;
  const int pages = (end + kPageTokens - 1) / kPageTokens;
  int page = static_cast<int>(turns_.size() / std::max<std::size_t>(page_floats(), 1));
  if (page >= pages) return;
  turns_.resize(static_cast<std::size_t>(pages) * page_floats());
  for (; page < pages; ++page) {
    float* cosine = turns_.data() + static_cast<std::size_t>(page) * page_floats();
    float* sine = cosine + pairs_ * kPageTokens;
    for (int i = 0; i < pairs_; ++i)
      for (int slot = 0; slot < kPageTokens; ++slot) {
        const double angle =
            (page * kPageTokens + slot) * frequencies_[static_cast<std::size_t>(i)];
        *cosine++ = static_cast<float>(magnitude_ * std::cos(angle));
        *sine++ = static_cast<float>(magnitude_ * std::sin(angle));
      }
  }
}

}  // namespace efimd::engine::cpu
