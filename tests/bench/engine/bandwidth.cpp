// What memory delivers, by the ways in which a matrix could be read.
#include "tests/bench/engine/bandwidth.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <new>
#include <thread>

#include "tests/bench/engine/read_loop.h"
#include "tests/bench/engine/timing.h"

namespace efimd::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{512} << 20U;  // far above any last-level cache here
constexpr std::size_t kFirstLevelBytes = 16 * 1024;
constexpr int kRounds = 13;
/// Out of the first-level cache the loop must be so many times as fast as memory.
constexpr double kFasterThanMemory = 3;

/// Touched memory.
class TouchedMemory {
 public:
  TouchedMemory(std::size_t bytes, bool huge_pages) : bytes_(bytes) {
    void* const start =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    ::madvise(start, bytes, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    data_ = static_cast<std::byte*>(start);
    for (std::size_t at = 0; at < bytes; at += 4096) data_[at] = std::byte{1};
  }
  ~TouchedMemory() { ::munmap(data_, bytes_); }
  TouchedMemory(const TouchedMemory&) = delete;
  TouchedMemory& operator=(const TouchedMemory&) = delete;
  const std::byte* data() const { return data_; }

 private:
  std::size_t bytes_;
  std::byte* data_;
};

/// What was read counts as used.
void use(std::uint64_t sum) { asm volatile("" : : "r"(sum)); }

/// How threads share what they read.
struct Sharing {
  const char* name;
  std::size_t chunk_bytes;  ///< in turn; 0: a half each, with two threads
};
constexpr Sharing kSharings[] = {{"a share each", 0},
                                 {"1 MiB in turn", std::size_t{1} << 20U},
                                 {"128 KiB in turn", std::size_t{128} << 10U},
                                 {"8 KiB in turn", std::size_t{8} << 10U}};

/// Reads all with so many threads, which start together.
double seconds_of_reading(const std::byte* data, int threads, const Sharing& sharing) {
  const ReadLoop loop = read_loop().loop;
  const std::size_t chunk = sharing.chunk_bytes == 0
                                ? kBytes / static_cast<std::size_t>(threads) / 256 * 256
                                : sharing.chunk_bytes;
  std::atomic<std::size_t> next{0};
  std::atomic<int> waiting{threads};
  const auto read = [&] {
    waiting.fetch_sub(1);
    while (waiting.load() > 0) std::this_thread::yield();
    for (;;) {
      const std::size_t at = next.fetch_add(chunk);
      if (at + chunk > kBytes) return;
      use(loop(data + at, chunk));
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(read);
  while (waiting.load() > 1) std::this_thread::yield();
  return seconds_of([&] {
    read();
    for (std::thread& other : others) other.join();
  });
}

Rate rate_of(std::vector<double> seconds, std::size_t bytes) {
  std::sort(seconds.begin(), seconds.end());
  const double gigabytes = static_cast<double>(bytes) / 1e9;
  return {gigabytes / seconds[seconds.size() / 2], gigabytes / seconds.front()};
}

/// GB/s of one thread out of its first-level cache.
double first_level_rate() {
  const TouchedMemory memory(kFirstLevelBytes, false);
  const ReadLoop loop = read_loop().loop;
  constexpr int kTimes = 20'000;
  std::vector<double> seconds;
  for (int round = 0; round < kRounds; ++round)
    seconds.push_back(seconds_of([&] {
      for (int i = 0; i < kTimes; ++i) use(loop(memory.data(), kFirstLevelBytes));
    }));
  return rate_of(seconds, kFirstLevelBytes * kTimes).best;
}

/// One row of the table.
struct Candidate {
  int threads;
  bool huge_pages;
  Sharing sharing;
  std::vector<double> seconds = {};
};

std::vector<Candidate> candidates() {
  std::vector<Candidate> all;
  for (const bool huge : {false, true}) {
    all.push_back({1, huge, kSharings[0]});
    if (const int threads = engine::cpu::physical_cores(); threads > 1)
      for (const Sharing& sharing : kSharings) all.push_back({threads, huge, sharing});
  }
  return all;
}

}  // namespace

class StepFloor::Memory : public TouchedMemory {
 public:
  using TouchedMemory::TouchedMemory;
};

StepFloor::StepFloor(const engine::Model& model, int threads) : pool_(threads) {
  const auto loop_of = [&](std::initializer_list<const engine::TensorView*> tensors) {
    std::size_t bytes = 0;
    for (const engine::TensorView* tensor : tensors)
      if (tensor->present()) bytes += static_cast<std::size_t>(tensor->rows) * tensor->row_bytes();
    loops_.push_back(bytes / 256 * 256);
    bytes_ += loops_.back();
  };
  for (const engine::LayerWeights& layer : model.weights().layers) {
    loop_of({&layer.query, &layer.key, &layer.value});
    loop_of({&layer.attention_output});
    loop_of({&layer.gate, &layer.up});
    loop_of({&layer.down});
  }
  loop_of({&model.weights().output});
  memory_ = std::make_unique<Memory>(bytes_, true);
}

StepFloor::~StepFloor() = default;

void StepFloor::read() {
  constexpr std::size_t kChunk = 64 * 1024;
  const ReadLoop loop = read_loop().loop;
  const std::byte* at = memory_->data();
  for (const std::size_t bytes : loops_) {
    pool_.parallel_for(static_cast<int>((bytes + kChunk - 1) / kChunk), [&](int chunk) {
      const std::size_t from = static_cast<std::size_t>(chunk) * kChunk;
      use(loop(at + from, std::min(kChunk, bytes - from)));
    });
    at += bytes;
  }
}

void print_bandwidth() {
  const double first_level = first_level_rate();
  const TouchedMemory small_pages(kBytes, false);
  const TouchedMemory huge_pages(kBytes, true);
  std::vector<Candidate> all = candidates();
  for (int round = 0; round < kRounds; ++round)
    for (Candidate& each : all)
      each.seconds.push_back(seconds_of_reading((each.huge_pages ? huge_pages : small_pages).data(),
                                                each.threads, each.sharing));

  std::printf(
      "Reading 512 MiB by %s loads, GB/s, %d rounds in turn; one thread out of the "
      "first-level cache: %.0f\n\n",
      read_loop().name, kRounds, first_level);
  double most_of_a_thread = 0;
  for (const Candidate& each : all)
    most_of_a_thread =
        std::max(most_of_a_thread, rate_of(each.seconds, kBytes).best / each.threads);
  if (first_level < kFasterThanMemory * most_of_a_thread) {
    std::printf("The loop is no more than %.1f times as fast as memory: it measures itself.\n",
                first_level / most_of_a_thread);
    return;
  }
  std::printf("| threads | pages | shared | median | best |\n| --- | --- | --- | --- | --- |\n");
  for (const Candidate& each : all) {
    const Rate rate = rate_of(each.seconds, kBytes);
    std::printf("| %d | %s | %s | %.1f | %.1f |\n", each.threads,
                each.huge_pages ? "2 MiB" : "4 KiB", each.threads == 1 ? "-" : each.sharing.name,
                rate.median, rate.best);
  }
}

}  // namespace efimd::bench
