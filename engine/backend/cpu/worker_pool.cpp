#include "engine/backend/cpu/worker_pool.h"

#include <algorithm>
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

// Parts of what is left of a share.
constexpr unsigned kChunkBits = 20;
constexpr std::uint64_t kChunkMask = (std::uint64_t{1} << kChunkBits) - 1;

std::uint64_t share_of(std::uint64_t loop_number, int first, int last) {
  return loop_number << (2 * kChunkBits) | static_cast<std::uint64_t>(first) << kChunkBits |
         static_cast<std::uint64_t>(last);
}
int first_of(std::uint64_t left) { return static_cast<int>(left >> kChunkBits & kChunkMask); }
int last_of(std::uint64_t left) { return static_cast<int>(left & kChunkMask); }

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

WorkerPool::WorkerPool(int threads) : shares_(static_cast<std::size_t>(std::max(threads, 1))) {
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work(i); });
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
    for (int chunk = 0; chunk < chunks && !leaves_off(); ++chunk) call(context, chunk);
    return;
  }
  assert(chunks <= kChunksMax);
  // Every chunk of the loop before is finished, and no share has any left: the fields are free.
  call_.store(call, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  chunks_.store(chunks, std::memory_order_relaxed);
  finished_.store(0, std::memory_order_relaxed);
  ++number_;
  const auto threads = static_cast<std::int64_t>(shares_.size());
  for (std::int64_t i = 0; i < threads; ++i) {
    const auto first = static_cast<int>(chunks * i / threads);
    const auto last = static_cast<int>(chunks * (i + 1) / threads);
    shares_[static_cast<std::size_t>(i)].left.store(share_of(number_, first, last),
                                                    std::memory_order_release);
  }
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  take_chunks(0);
  for (int done = finished_.load(std::memory_order_acquire); done != chunks;
       done = finished_.load(std::memory_order_acquire)) {
    wait_for_change(finished_, done);
  }
}

void WorkerPool::take_chunks(int thread) {
  const std::size_t own = static_cast<std::size_t>(thread);
  int taken = take_from(shares_[own], true);
  for (std::size_t i = 1; i < shares_.size(); ++i)
    taken += take_from(shares_[(own + i) % shares_.size()], false);
  // Once, and not for each chunk: the counter's cache line goes from core to core. Until then the loop is not finished, so its
  // fields are those of the chunks that were taken. A caller asleep wakes at the last ones only.
  if (taken > 0 && finished_.fetch_add(taken, std::memory_order_acq_rel) + taken ==
                       chunks_.load(std::memory_order_relaxed))
    finished_.notify_one();
}

int WorkerPool::take_from(Share& share, bool front) {
  int taken = 0;
  std::uint64_t left = share.left.load(std::memory_order_acquire);
  while (first_of(left) < last_of(left)) {
    const Call call = call_.load(std::memory_order_relaxed);
    const void* context = context_.load(std::memory_order_relaxed);
    const int chunk = front ? first_of(left) : last_of(left) - 1;
    const std::uint64_t after = front ? left + (std::uint64_t{1} << kChunkBits) : left - 1;
    // Fails when another thread took a chunk, or when a new loop began: then all is read again.
    if (!share.left.compare_exchange_weak(left, after, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      continue;
    }
    if (!leaves_off()) call(context, chunk);
    ++taken;
    left = share.left.load(std::memory_order_acquire);
  }
  return taken;
}

void WorkerPool::work(int thread) {
  for (int seen = 0;;) {
    wait_for_change(loop_, seen);
    seen = loop_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_relaxed)) return;
    take_chunks(thread);
  }
}

}  // namespace efimd::engine::cpu
