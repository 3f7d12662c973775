#include "engine/backend/cpu/kv_memory.h"

#include <sys/mman.h>

#include <cassert>
#include <cstring>
#include <string>
#include <utility>

namespace efimd::engine::cpu {

namespace {

constexpr int kValueAlignment = 16;  ///< lanes of the widest vectors

std::size_t size(int count) { return static_cast<std::size_t>(count); }

tl::unexpected<Error> no_memory(const KvMemory::Sizes& sizes, std::size_t page_bytes) {
  return fail(Fault::kNoMemory,
              "KV pages: cannot reserve " + std::to_string(sizes.page_count) + " pages of " +
                  std::to_string(page_bytes) + " bytes",
              "lower the KV budget");
}

}  // namespace

KvMemory::KvMemory(const Sizes& sizes)
    : sizes_(sizes),
      value_width_((sizes.head_width + kValueAlignment - 1) / kValueAlignment * kValueAlignment),
      page_elements_(size(sizes.layers) * size(sizes.kv_heads) * head_elements()) {}

KvMemory::KvMemory(KvMemory&& other) noexcept
    : sizes_(other.sizes_),
      value_width_(other.value_width_),
      page_elements_(other.page_elements_),
      data_(std::exchange(other.data_, nullptr)),
      touched_(std::move(other.touched_)),
      touched_count_(other.touched_count_) {}

KvMemory::~KvMemory() {
  if (data_ != nullptr) ::munmap(data_, size(sizes_.page_count) * page_bytes());
}

Result<KvMemory> KvMemory::open(const Sizes& sizes) {
  KvMemory memory(sizes);
  const std::size_t page_bytes = memory.page_bytes();
  if (sizes.page_count < 1)
    return fail(Fault::kBadInput, "KV pages: at least one is needed", "raise the KV budget");
  if (size(sizes.page_count) > (static_cast<std::size_t>(-1) >> 1U) / page_bytes)
    return no_memory(sizes, page_bytes);
  void* start = ::mmap(nullptr, size(sizes.page_count) * page_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return no_memory(sizes, page_bytes);
  memory.data_ = static_cast<std::uint16_t*>(start);
  memory.touched_.resize(size(sizes.page_count));
  return memory;
}

std::size_t KvMemory::head_elements() const {
  return size(kPageTokens) * (size(sizes_.head_width) + size(value_width_));
}

std::size_t KvMemory::head_offset(int layer, int kv_head) const {
  return (size(layer) * size(sizes_.kv_heads) + size(kv_head)) * head_elements();
}

void KvMemory::touch(PageIndex page) {
  assert(page >= 0 && page < sizes_.page_count);
  if (touched_[size(page)]) return;
  touched_[size(page)] = true;
  ++touched_count_;
}

void KvMemory::put(int layer, int kv_head, PageIndex page, int slot, const std::uint16_t* key,
                   const std::uint16_t* value) {
  std::uint16_t* k = data_ + size(page) * page_elements_ + head_offset(layer, kv_head);
  std::uint16_t* v = k + size(sizes_.head_width) * size(kPageTokens);
  for (int e = 0; e < sizes_.head_width; ++e) k[e * kPageTokens + slot] = key[e];
  std::memcpy(v + size(slot) * size(value_width_), value, size(sizes_.head_width) * sizeof *value);
}

std::span<const std::byte> KvMemory::page(PageIndex page) const {
  assert(page >= 0 && page < sizes_.page_count);
  return std::as_bytes(std::span(data_ + size(page) * page_elements_, page_elements_));
}

std::span<std::byte> KvMemory::page_to_write(PageIndex page) {
  touch(page);
  return std::as_writable_bytes(std::span(data_ + size(page) * page_elements_, page_elements_));
}

void KvMemory::copy(PageIndex from, PageIndex to, int tokens) {
  assert(tokens >= 0 && tokens <= kPageTokens && from != to);
  touch(to);
  const std::uint16_t* source = data_ + size(from) * page_elements_;
  std::uint16_t* target = data_ + size(to) * page_elements_;
  for (int head = 0; head < sizes_.layers * sizes_.kv_heads; ++head) {
    for (int e = 0; e < sizes_.head_width; ++e)
      std::memcpy(target + e * kPageTokens, source + e * kPageTokens,
                  size(tokens) * sizeof *source);
    const std::size_t v = size(sizes_.head_width) * size(kPageTokens);
    std::memcpy(target + v, source + v, size(tokens) * size(value_width_) * sizeof *source);
    source += head_elements();
    target += head_elements();
  }
}

}  // namespace efimd::engine::cpu
