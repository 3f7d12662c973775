#include "base/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

namespace efimd {

namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// A rest of at least half a huge page takes a whole one, a smaller one small pages.
std::size_t mapped_bytes(std::size_t bytes) {
  static const auto kSystemPage = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t rest = bytes % kHugePageBytes;
  return rounded_up(bytes, rest >= kHugePageBytes / 2 ? kHugePageBytes : kSystemPage);
}

}  // namespace

void* allocate_for_random_access(std::size_t bytes) {
  if (bytes < kHugePageBytes) return ::operator new(bytes);
  if (bytes > SIZE_MAX / 2) throw std::bad_alloc();
  const std::size_t kept = mapped_bytes(bytes), all = kept + kHugePageBytes;
  void* const mapping =
      ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(mapping);
  const std::size_t before = rounded_up(address, kHugePageBytes) - address;
  char* const memory = static_cast<char*>(mapping) + before;
  if (before > 0) ::munmap(mapping, before);
  if (before < kHugePageBytes) ::munmap(memory + kept, kHugePageBytes - before);
#if defined(MADV_HUGEPAGE)
  ::madvise(memory, kept / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
  return memory;
}

std::size_t random_access_bytes(std::size_t bytes) {
  return bytes < kHugePageBytes ? bytes : mapped_bytes(bytes);
}

void deallocate_for_random_access(void* memory, std::size_t bytes) noexcept {
  if (bytes < kHugePageBytes)
    ::operator delete(memory);
  else
    ::munmap(memory, mapped_bytes(bytes));
}

}  // namespace efimd
