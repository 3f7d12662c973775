#include "engine/backend/cpu/kv/kv8_memory.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "engine/backend/cpu/kernels/half.h"
#include "engine/backend/cpu/kernels/kernels.h"
#include "engine/backend/size.h"

namespace efimd::engine::cpu {

namespace {

int groups_of(int elements) { return (elements + kGroup - 1) / kGroup; }

std::size_t head_bytes_of(int head_width) {
  const int value_width = value_width_of(head_width);
  return size(kPageTokens) *
         (size(head_width) + size(value_width) +
          sizeof(std::uint16_t) * size(groups_of(head_width) + groups_of(value_width)));
}

/// Quantizes up to 32 elements: quants at out, out + stride, ...; returns the scale's bits.
std::uint16_t quantize_group(const float* x, int count, std::int8_t* out, int stride) {
  float largest = 0.0F;
  for (int i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  largest = std::min(largest, Kv8Memory::kElementMax);
  const float least = largest / 127.0F;
  std::uint16_t bits = float_to_half(least);
  if (half_to_float(bits) < least) ++bits;  // the next half; kElementMax keeps it finite
  const float inverse = bits == 0 ? 0.0F : 1.0F / half_to_float(bits);
  for (int i = 0; i < count; ++i) {
    const float level = std::clamp(x[i] * inverse, -127.0F, 127.0F);
    out[i * stride] = static_cast<std::int8_t>(std::lrintf(level));
  }
  return bits;
}

}  // namespace

std::size_t Kv8Memory::page_bytes_of(const KvSizes& sizes) {
  return size(sizes.layers) * size(sizes.kv_heads) * head_bytes_of(sizes.head_width);
}

Kv8Memory::Kv8Memory(const KvSizes& sizes, PageMemory pages)
    : sizes_(sizes),
      value_width_(value_width_of(sizes.head_width)),
      head_bytes_(head_bytes_of(sizes.head_width)),
      pages_(std::move(pages)) {}

Result<Kv8Memory> Kv8Memory::open(const KvSizes& sizes) {
  if (sizes.head_width > kKv8HeadWidthMax)
    return fail(Fault::kUnsupported,
                "8-bit KV takes heads of at most " + std::to_string(kKv8HeadWidthMax) +
                    " elements, this model has " + std::to_string(sizes.head_width),
                "set cache.kv_type to \"f16\"");
  Result<PageMemory> pages = PageMemory::open(sizes.page_count, page_bytes_of(sizes));
  if (!pages) return tl::unexpected(std::move(pages).error());
  return Kv8Memory(sizes, *std::move(pages));
}

Kv8Memory::Block Kv8Memory::block(PageIndex page, std::size_t offset) {
  std::byte* start = pages_.data() + size(page) * pages_.page_bytes() + offset;
  Block block{};
  block.k = reinterpret_cast<std::int8_t*>(start);
  block.v = block.k + size(sizes_.head_width) * size(kPageTokens);
  block.k_scales =
      reinterpret_cast<std::uint16_t*>(block.v + size(value_width_) * size(kPageTokens));
  block.v_scales = block.k_scales + size(groups_of(sizes_.head_width)) * size(kPageTokens);
  return block;
}

void Kv8Memory::put(int layer, int kv_head, PageIndex page, int slot, const float* key,
                    const float* value) {
  const Block to = block(page, offset(layer, kv_head));
  for (int first = 0; first < sizes_.head_width; first += kGroup) {
    const int count = std::min(kGroup, sizes_.head_width - first);
    const int scale = first / kGroup * kPageTokens + slot;
    to.k_scales[scale] =
        quantize_group(key + first, count, to.k + first * kPageTokens + slot, kPageTokens);
    to.v_scales[scale] =
        quantize_group(value + first, count, to.v + slot * value_width_ + first, 1);
  }
}

void Kv8Memory::copy(PageIndex from, PageIndex to, int tokens) {
  assert(tokens >= 0 && tokens <= kPageTokens && from != to);
  pages_.touch(to);
  const std::size_t count = size(tokens);
  for (int head = 0; head < sizes_.layers * sizes_.kv_heads; ++head) {
    const Block source = block(from, size(head) * head_bytes_);
    const Block target = block(to, size(head) * head_bytes_);
    for (int at = 0; at < sizes_.head_width * kPageTokens; at += kPageTokens)
      std::memcpy(target.k + at, source.k + at, count);
    std::memcpy(target.v, source.v, count * size(value_width_));
    const int groups = groups_of(sizes_.head_width) + groups_of(value_width_);
    for (int at = 0; at < groups * kPageTokens; at += kPageTokens)
      std::memcpy(target.k_scales + at, source.k_scales + at, count * sizeof(std::uint16_t));
  }
}

}  // namespace efimd::engine::cpu
