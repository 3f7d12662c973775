#pragma once

#include <cstddef>

namespace efimd {

/// A huge page of the processors that efimd runs on.
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

/// Memory for tables that are read in no order, where small pages would cost a walk through the
/// page tables for most reads. From kHugePageBytes on it is a mapping that begins at such a page, and
/// huge pages are asked for; a system that refuses them gives small ones.
/// Throws std::bad_alloc.
void* allocate_for_random_access(std::size_t bytes);
void deallocate_for_random_access(void* memory, std::size_t bytes) noexcept;
/// What that takes of the machine's memory.
std::size_t random_access_bytes(std::size_t bytes);

/// The same as an allocator of the standard library.
template <class T>
struct RandomAccessAllocator {
  using value_type = T;

  RandomAccessAllocator() = default;
  template <class U>
  explicit(false) RandomAccessAllocator(const RandomAccessAllocator<U>&) {}

  T* allocate(std::size_t count) {
    return static_cast<T*>(allocate_for_random_access(count * sizeof(T)));
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    deallocate_for_random_access(memory, count * sizeof(T));
  }
  friend bool operator==(const RandomAccessAllocator&, const RandomAccessAllocator&) = default;
};

}  // namespace efimd
