#include "tests/support/heap_count.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace efimd::test {
namespace {

thread_local HeapCount count;

void* take(std::size_t size, std::size_t alignment) {
  count.largest_bytes = std::max(count.largest_bytes, size);  // also where there is not so much
  void* const memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
  if (memory == nullptr) return nullptr;
  count.live_bytes += static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  count.peak_bytes = std::max(count.peak_bytes, count.live_bytes);
  return memory;
}

void* take_or_throw(std::size_t size, std::size_t alignment) {
  void* const memory = take(std::max<std::size_t>(size, 1), alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void give(void* memory) {
  if (memory == nullptr) return;
  count.live_bytes -= static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void begin_heap_count() { count = {}; }
HeapCount heap_count() { return count; }

}  // namespace efimd::test

// The arrays' forms call these; the nothrow form would too, but AddressSanitizer brings its own.
void* operator new(std::size_t size) { return efimd::test::take_or_throw(size, 1); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return efimd::test::take(std::max<std::size_t>(size, 1), 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return efimd::test::take_or_throw(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { efimd::test::give(memory); }
void operator delete(void* memory, std::size_t) noexcept { efimd::test::give(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { efimd::test::give(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  efimd::test::give(memory);
}
