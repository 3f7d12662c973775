#include "base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace efimd {

namespace {

/// A process maps a model or two; commands map a source file beside.
constexpr int kMappingsMax = 64;
constexpr int kNone = -1;

/// The handler may read these at any moment, so `begin` is written last and taken back first.
struct Slot {
  std::atomic<bool> taken = false;
  std::atomic<std::uintptr_t> begin = 0;  ///< 0: nothing is guarded
  std::atomic<std::uintptr_t> end = 0;
  std::atomic<bool> cut = false;
};
std::array<Slot, kMappingsMax> slots;
std::uintptr_t page_bytes;
static_assert(std::atomic<std::uintptr_t>::is_always_lock_free);

/// Puts zeros in place of the mapping from the page of `address` on: what lies after it is as lost.
bool replace_from(std::uintptr_t address, Slot& slot) {
  const std::uintptr_t page = address / page_bytes * page_bytes;
  const std::uintptr_t bytes = slot.end - page;
  slot.cut = true;
  return ::mmap(reinterpret_cast<void*>(page), bytes, PROT_READ,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/// Only what a signal handler may do: atomics that take no lock, and one system call.
void on_bus_error(int /*signal*/, siginfo_t* info, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool of_an_access = info->si_code > 0;  // not by kill(2)
  for (Slot& slot : slots)
    if (of_an_access && slot.begin != 0 && address >= slot.begin && address < slot.end &&
        replace_from(address, slot))
      return;
  ::signal(SIGBUS, SIG_DFL);
  ::raise(SIGBUS);
}

void install_handler() {
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

int take_slot() {
  for (int index = 0; index < kMappingsMax; ++index)
    if (!slots[static_cast<std::size_t>(index)].taken.exchange(true)) return index;
  return kNone;
}

}  // namespace

MappingGuard::MappingGuard(std::span<const std::byte> mapping) : slot_(take_slot()) {
  static std::once_flag installed;
  std::call_once(installed, install_handler);
  if (slot_ == kNone) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  slot.cut = false;
  slot.end = begin + mapping.size();
  slot.begin = begin;
}

MappingGuard::~MappingGuard() {
  if (slot_ == kNone) return;
  Slot& slot = slots[static_cast<std::size_t>(slot_)];
  slot.begin = 0;
  slot.taken = false;
}

bool MappingGuard::was_cut() const {
  return slot_ != kNone && slots[static_cast<std::size_t>(slot_)].cut;
}

}  // namespace efimd
