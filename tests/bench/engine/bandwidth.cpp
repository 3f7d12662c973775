// What memory delivers, by the ways in which a matrix could be read.
#include "tests/bench/engine/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

#include "engine/backend/cpu/worker_pool.h"
#include "tests/bench/engine/timing.h"

namespace efimd::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{512} << 20U;  // far above any last-level cache here
constexpr std::size_t kChunk = std::size_t{1} << 20U;    // that a thread takes at a time
constexpr std::size_t kLine = 64;
constexpr int kRuns = 5;

/// kBytes of touched memory.
class Memory {
 public:
  explicit Memory(bool huge_pages) {
    void* const start =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    ::madvise(start, kBytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    data_ = static_cast<std::byte*>(start);
    for (std::size_t at = 0; at < kBytes; at += 4096) data_[at] = std::byte{1};
  }
  ~Memory() { ::munmap(data_, kBytes); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  const std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

/// Bytes from stream to stream: some lines less than an even share, for streams whose distance is a
/// power of two would meet in the same lines of the first-level cache.
std::size_t part_of(int streams) {
  const std::size_t even = kChunk / static_cast<std::size_t>(streams);
  return streams == 1 ? even : even - 5 * kLine;
}

/// Adds up a chunk, `streams` parts of it side by side.
std::uint64_t sum_chunk(const std::byte* chunk, const Reading& reading) {
  using Vector [[gnu::vector_size(64)]] = std::uint64_t;
  const std::size_t part = part_of(reading.streams);
  Vector sum = {};
  for (std::size_t at = 0; at < part; at += kLine) {
    for (int stream = 0; stream < reading.streams; ++stream) {
      const std::byte* const line = chunk + static_cast<std::size_t>(stream) * part + at;
      if (reading.ahead_bytes > 0) __builtin_prefetch(line + reading.ahead_bytes);
      sum += *reinterpret_cast<const Vector*>(line);
    }
  }
  std::uint64_t total = 0;
  for (int lane = 0; lane < 8; ++lane) total += sum[lane];
  return total;
}

double bandwidth_of(const Memory& memory, const Reading& reading) {
  engine::cpu::WorkerPool pool(reading.threads);
  std::vector<std::uint64_t> sums(kBytes / kChunk);
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    best = std::min(best, seconds_of([&] {
                      pool.parallel_for(static_cast<int>(sums.size()), [&](int chunk) {
                        const auto index = static_cast<std::size_t>(chunk);
                        sums[index] = sum_chunk(memory.data() + index * kChunk, reading);
                      });
                    }));
  }
  asm volatile("" : : "r"(sums.data()) : "memory");
  const auto streams = static_cast<std::size_t>(reading.streams);
  const std::size_t read = sums.size() * streams * part_of(reading.streams);
  return static_cast<double>(read) / best / 1e9;
}

}  // namespace

double read_bandwidth(const Reading& reading) {
  return bandwidth_of(Memory(reading.huge_pages), reading);
}

double best_read_bandwidth(int threads) {
  double best = 0;
  for (const bool huge : {false, true}) {
    const Memory memory(huge);
    for (const int streams : {1, 4, 16})
      for (const int ahead : {0, 2048})
        best = std::max(best, bandwidth_of(memory, {threads, streams, ahead, huge}));
  }
  return best;
}

void print_bandwidth() {
  std::printf("Read bandwidth, GB/s, by streams of a thread and bytes of prefetch\n\n");
  std::printf(
      "| threads | pages | 1, 0 | 1, 2048 | 4, 0 | 4, 2048 | 16, 0 | 16, 1024 |\n| --- | --- |");
  std::printf(" --- | --- | --- | --- | --- | --- |\n");
  for (const bool huge : {false, true}) {
    const Memory memory(huge);
    for (const int threads : {1, engine::cpu::physical_cores()}) {
      std::printf("| %d | %s |", threads, huge ? "2 MiB" : "4 KiB");
      for (const auto& [streams, ahead] :
           {std::pair(1, 0), {1, 2048}, {4, 0}, {4, 2048}, {16, 0}, {16, 1024}})
        std::printf(" %.1f |", bandwidth_of(memory, {threads, streams, ahead, huge}));
      std::printf("\n");
    }
  }
}

}  // namespace efimd::bench
