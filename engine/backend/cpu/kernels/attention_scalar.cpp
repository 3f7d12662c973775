#include "engine/backend/cpu/kernels/attention_scalar.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "engine/backend/cpu/kernels/half.h"

namespace efimd::engine::cpu {

namespace {

/// One query over one page: the online softmax step.
///   k [E][P] f16, v [P][value_width] f16; tokens `from` .. visible - 1 count
void attend_page(const AttentionTask& task, const float* q, const std::uint16_t* k, int from,
                 int visible, float* partial) {
  const std::uint16_t* v = k + task.head_width * kPageTokens;
  float weight[kPageTokens];
  float maximum = partial[0];
  for (int c = from; c < visible; ++c) {
    weight[c] = 0.0F;
    for (int e = 0; e < task.head_width; ++e)
      weight[c] += q[e] * half_to_float(k[e * kPageTokens + c]);
    maximum = std::max(maximum, weight[c]);
  }
  const float kept = std::exp(partial[0] - maximum);  // 0 on the first page: m is -inf
  float sum = 0.0F;
  for (int c = from; c < visible; ++c) sum += weight[c] = std::exp(weight[c] - maximum);
  partial[0] = maximum;
  partial[1] = partial[1] * kept + sum;
  for (int e = 0; e < task.head_width; ++e) {
    float& acc = partial[kPartialHead + e];
    acc *= kept;
    for (int c = from; c < visible; ++c)
      acc += weight[c] * half_to_float(v[c * task.value_width + e]);
  }
}

/// `page_of(i)` gives page i of the range, as it lies in KvMemory.
template <class PageOf>
void attend_pages(const AttentionTask& task, const PageOf& page_of) {
  for (int r = 0; r < task.rows; ++r) {
    const int visible = std::min(task.tokens, task.position + r + 1);
    const int hidden = std::max(0, task.position + r + 1 - task.window);
    for (int g = 0; g < task.group; ++g) {
      const float* q = task.q + static_cast<std::size_t>(r) * task.q_stride +
                       static_cast<std::size_t>(g) * static_cast<std::size_t>(task.head_width);
      float* partial = task.partial + static_cast<std::size_t>(r) * task.partial_row_stride +
                       static_cast<std::size_t>(g) * task.partial_stride;
      partial[0] = -std::numeric_limits<float>::infinity();
      std::fill(partial + 1, partial + kPartialHead + task.value_width, 0.0F);
      for (int first = hidden / kPageTokens * kPageTokens; first < visible; first += kPageTokens) {
        attend_page(task, q, page_of(first / kPageTokens), std::max(0, hidden - first),
                    std::min(kPageTokens, visible - first), partial);
      }
    }
  }
}

/// The bias of key element e of the token in `slot`.
float bias_of(const Kv8Source& source, const float* turns, int e, int slot, float key) {
  if (source.bias_along == nullptr) return key;
  if (e < 2 * source.pairs) {
    const int pair = source.adjacent_pairs ? e / 2 : e % source.pairs;
    const float* cosine = turns + pair * kPageTokens + slot;
    key += source.bias_along[e] * *cosine;
    key += source.bias_across[e] * cosine[source.pairs * kPageTokens];
  } else {
    key += source.bias_along[e];
  }
  return std::clamp(key, -kHalfMax, kHalfMax);
}

/// A page as KvMemory has it; of values, those of the first `tokens` tokens.
void expand(const AttentionTask& task, const Kv8Source& source, int page, int tokens,
            std::vector<std::uint16_t>& out) {
  const int width = task.head_width;
  const auto* k = reinterpret_cast<const std::int8_t*>(
      source.kv + static_cast<std::size_t>(task.page_table[page]) * source.page_stride);
  const std::int8_t* v = k + width * kPageTokens;
  const auto* k_scales = reinterpret_cast<const std::uint16_t*>(v + task.value_width * kPageTokens);
  const std::uint16_t* v_scales = k_scales + (width + kGroup - 1) / kGroup * kPageTokens;
  const float* turns = source.turns + page * 2 * source.pairs * kPageTokens;
  for (int e = 0; e < width; ++e)
    for (int c = 0; c < kPageTokens; ++c) {
      const float scale = half_to_float(k_scales[e / kGroup * kPageTokens + c]);
      const float key = static_cast<float>(k[e * kPageTokens + c]) * scale;
      out[static_cast<std::size_t>(e * kPageTokens + c)] =
          float_to_half(bias_of(source, turns, e, c, key));
    }
  std::uint16_t* values = out.data() + width * kPageTokens;
  for (int c = 0; c < tokens; ++c)
    for (int e = 0; e < task.value_width; ++e)
      values[c * task.value_width + e] =
          float_to_half(static_cast<float>(v[c * task.value_width + e]) *
                        half_to_float(v_scales[e / kGroup * kPageTokens + c]));
}

}  // namespace

void attention_scalar(const AttentionTask& task) {
  attend_pages(task, [&](int page) {
    return task.kv + static_cast<std::size_t>(task.page_table[page]) * task.page_stride;
  });
}

void attention_kv8_scalar(const AttentionTask& task, const Kv8Source& source) {
  std::vector<std::uint16_t> page_at(
      static_cast<std::size_t>((task.head_width + task.value_width) * kPageTokens));
  attend_pages(task, [&](int page) -> const std::uint16_t* {
    expand(task, source, page, std::min(kPageTokens, task.tokens - page * kPageTokens), page_at);
    return page_at.data();
  });
}

}  // namespace efimd::engine::cpu
