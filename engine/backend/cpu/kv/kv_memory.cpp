#include "engine/backend/cpu/kv/kv_memory.h"

#include <cassert>
#include <cstring>

#include "engine/backend/size.h"

namespace efimd::engine::cpu {

namespace {

constexpr int kValueAlignment = 16;  ///< lanes of the widest vectors

std::size_t head_elements(int head_width) {
  return size(kPageTokens) * (size(head_width) + size(value_width_of(head_width)));
}

}  // namespace

int value_width_of(int head_width) {
  return (head_width + kValueAlignment - 1) / kValueAlignment * kValueAlignment;
}

std::size_t KvMemory::page_bytes_of(const KvSizes& sizes) {
  return size(sizes.layers) * size(sizes.kv_heads) * head_elements(sizes.head_width) *
         sizeof(std::uint16_t);
}

KvMemory::KvMemory(const KvSizes& sizes, PageMemory pages)
    : sizes_(sizes), value_width_(value_width_of(sizes.head_width)), pages_(std::move(pages)) {}

Result<KvMemory> KvMemory::open(const KvSizes& sizes) {
  Result<PageMemory> pages = PageMemory::open(sizes.page_count, page_bytes_of(sizes));
  if (!pages) return tl::unexpected(std::move(pages).error());
  return KvMemory(sizes, *std::move(pages));
}

std::size_t KvMemory::head_stride() const { return head_elements(sizes_.head_width); }

std::size_t KvMemory::offset(int layer, int kv_head) const {
  return (size(layer) * size(sizes_.kv_heads) + size(kv_head)) * head_stride();
}

void KvMemory::put(int layer, int kv_head, PageIndex page_index, int slot, const std::uint16_t* key,
                   const std::uint16_t* value) {
  std::uint16_t* k = page(page_index) + offset(layer, kv_head);
  std::uint16_t* v = k + size(sizes_.head_width) * size(kPageTokens);
  for (int e = 0; e < sizes_.head_width; ++e) k[e * kPageTokens + slot] = key[e];
  std::memcpy(v + size(slot) * size(value_width_), value, size(sizes_.head_width) * sizeof *value);
}

void KvMemory::copy(PageIndex from, PageIndex to, int tokens) {
  assert(tokens >= 0 && tokens <= kPageTokens && from != to);
  pages_.touch(to);
  const std::uint16_t* source = page(from);
  std::uint16_t* target = page(to);
  for (int head = 0; head < sizes_.layers * sizes_.kv_heads; ++head) {
    for (int e = 0; e < sizes_.head_width; ++e)
      std::memcpy(target + e * kPageTokens, source + e * kPageTokens,
                  size(tokens) * sizeof *source);
    const std::size_t v = size(sizes_.head_width) * size(kPageTokens);
    std::memcpy(target + v, source + v, size(tokens) * size(value_width_) * sizeof *source);
    source += head_stride();
    target += head_stride();
  }
}

}  // namespace efimd::engine::cpu
