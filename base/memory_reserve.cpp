#include "base/memory_reserve.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace efimd {

namespace {

constexpr std::size_t kReserveBytes = std::size_t{4} << 20;

std::atomic<void*> reserve{nullptr};
std::atomic<bool> begun{false};

void give_back() {
  void* const kept = reserve.exchange(nullptr);
  if (kept == nullptr) throw std::bad_alloc();
  std::free(kept);  // and the allocation is tried again
}

}  // namespace

void MemoryReserve::begin() {
  begun = true;
  restore();
  std::set_new_handler(give_back);
}

void MemoryReserve::restore() {
  if (!begun || reserve != nullptr) return;
  std::free(reserve.exchange(std::malloc(kReserveBytes)));
}

}  // namespace efimd
