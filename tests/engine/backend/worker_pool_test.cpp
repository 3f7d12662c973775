#include "engine/backend/cpu/worker_pool.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace efimd::test {
namespace {

using engine::cpu::WorkerPool;

/// Processor time of the whole process, in seconds.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

TEST_CASE("every chunk of every loop is run once, whatever the number of threads") {
  for (const int threads : {1, 2, 4, 8}) {
    WorkerPool pool(threads);
    CHECK(pool.threads() == threads);
    std::vector<int> runs(200);
    long total = 0;
    // The vector is written without atomics: a chunk that two threads take, or a loop that ends
    // early, is a race.
    for (int loop = 0; loop < 2000; ++loop) {
      const int chunks = loop % 200;
      pool.parallel_for(chunks, [&](int chunk) { ++runs[static_cast<std::size_t>(chunk)]; });
      total += chunks;
    }
    long seen = 0;
    for (const int count : runs) seen += count;
    CHECK(seen == total);
  }
}

TEST_CASE("a loop returns only when its slowest chunk is done") {
  WorkerPool pool(2);
  std::latch both_started(2);
  std::atomic<bool> slow_done{false};
  bool saw_it = false;
  // Each thread takes one chunk and waits for the other; then the worker or the caller, whichever
  // has chunk 0, is late.
  pool.parallel_for(2, [&](int chunk) {
    both_started.arrive_and_wait();
    if (chunk != 0) return;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    slow_done = true;
  });
  saw_it = slow_done;
  CHECK(saw_it);
}

TEST_CASE("loops run on after the workers fell asleep") {
  WorkerPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> sum{0};
    pool.parallel_for(50, [&](int chunk) { sum += chunk; });
    CHECK(sum == 49 * 50 / 2);
    std::this_thread::sleep_for(
        std::chrono::milliseconds(2));  // longer than they spin; decides nothing
  }
}

TEST_CASE("an idle pool uses no processor time") {
  WorkerPool pool(4);
  pool.parallel_for(64, [](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = processor_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(processor_seconds() - before < 0.1);  // three spinning threads would take up to 0.6
}

TEST_CASE("a pool that was never used ends") {
  for (int i = 0; i < 100; ++i) WorkerPool pool(4);
  SUCCEED();
}

TEST_CASE("there is at least one physical core") { CHECK(engine::cpu::physical_cores() >= 1); }

}  // namespace efimd::test
