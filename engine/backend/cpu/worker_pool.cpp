#include "engine/backend/cpu/worker_pool.h"

#include <cassert>
#include <chrono>
#include <fstream>
#include <set>
#include <string>

#if defined(__linux__)
#include <sched.h>
#endif

namespace efimd::engine::cpu {

namespace {

/// A step has a gap of a few microseconds between two loops, waking a sleeper takes about 50.
constexpr std::chrono::microseconds kSpin{40};

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until `value` is no longer `old`: spinning first, then asleep.
void wait_for_change(std::atomic<int>& value, int old) {
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  value.wait(old, std::memory_order_acquire);
}

// Parts of a ticket.
constexpr unsigned kChunkBits = 20;
constexpr std::uint64_t kChunkMask = (std::uint64_t{1} << kChunkBits) - 1;

std::uint64_t first_ticket(std::uint64_t loop_number, int chunks) {
  return loop_number << (2 * kChunkBits) | static_cast<std::uint64_t>(chunks) << kChunkBits;
}
int next_of(std::uint64_t ticket) { return static_cast<int>(ticket & kChunkMask); }
int chunks_of(std::uint64_t ticket) { return static_cast<int>(ticket >> kChunkBits & kChunkMask); }

}  // namespace

int physical_cores() {
  std::set<std::string> cores;
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      std::ifstream siblings("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                             "/topology/thread_siblings_list");
      std::string core;
      if (std::getline(siblings, core)) cores.insert(core);
    }
  }
#endif
  if (!cores.empty()) return static_cast<int>(cores.size());
  const unsigned logical = std::thread::hardware_concurrency();
  return logical == 0 ? 1 : static_cast<int>(logical);
}

WorkerPool::WorkerPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {
    shut_down();
    throw;
  }
}

WorkerPool::~WorkerPool() { shut_down(); }

void WorkerPool::shut_down() {
  stop_.store(true, std::memory_order_relaxed);
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkerPool::run(int chunks, Call call, const void* context) {
  if (chunks <= 1 || workers_.empty()) {
    for (int chunk = 0; chunk < chunks; ++chunk) call(context, chunk);
    return;
  }
  assert(chunks <= kChunksMax);
  // Every chunk of the loop before is finished, so nobody can claim one under its ticket: the
  // fields are free.
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  const std::uint64_t number = (ticket_.load(std::memory_order_relaxed) >> (2 * kChunkBits)) + 1;
  ticket_.store(first_ticket(number, chunks), std::memory_order_release);
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  take_chunks();
  for (int done = finished_.load(std::memory_order_acquire); done != chunks;
       done = finished_.load(std::memory_order_acquire)) {
    wait_for_change(finished_, done);
  }
}

void WorkerPool::take_chunks() {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (next_of(ticket) < chunks_of(ticket)) {
    const Call call = call_.load(std::memory_order_relaxed);
    const void* context = context_.load(std::memory_order_relaxed);
    // Fails when another thread took the chunk, or when a new loop began: then all is read again.
    if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
      continue;
    }
    call(context, next_of(ticket));
    // A caller asleep wakes at the last chunk only.
    if (finished_.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks_of(ticket))
      finished_.notify_one();
    ticket = ticket_.load(std::memory_order_acquire);
  }
}

void WorkerPool::work() {
  for (int seen = 0;;) {
    wait_for_change(loop_, seen);
    seen = loop_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_chunks();
  }
}

}  // namespace efimd::engine::cpu
