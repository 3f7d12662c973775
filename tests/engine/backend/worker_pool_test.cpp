#include "engine/backend/cpu/worker_pool.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <latch>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace efimd::test {
namespace {

using engine::cpu::WorkerPool;

/// Waits until every thread of this process but the calling one is blocked in the kernel, as Linux tells it: a spinning
/// thread never is. False when that takes a minute; true at once where there is no /proc.
bool others_fall_asleep() {
  const std::filesystem::path tasks = "/proc/self/task";
  if (!std::filesystem::exists(tasks)) return true;
  const std::string self = std::filesystem::read_symlink("/proc/thread-self").filename();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  const auto awake = [&](const std::filesystem::directory_entry& task) {
    if (task.path().filename() == self) return false;
    std::ifstream file(task.path() / "stat");
    std::string stat;
    std::getline(file, stat);
    const std::size_t name_end = stat.rfind(')');  // "tid (name) state ..."
    return name_end != std::string::npos && stat.substr(name_end + 2, 1) != "S";
  };
  while (std::chrono::steady_clock::now() < deadline) {
    const std::filesystem::directory_iterator threads(tasks);
    if (std::none_of(begin(threads), end(threads), awake)) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

TEST_CASE("once its stop fires a loop leaves chunks out, and the next is whole again") {
  for (const int threads : {1, 2, 4}) {
    WorkerPool pool(threads);
    std::stop_source source;
    const std::stop_token stop = source.get_token();
    std::atomic<int> runs{0};
    const auto loop = [&](int stopped_at) {
      runs = 0;
      pool.parallel_for(100, [&](int chunk) {
        ++runs;
        if (chunk == stopped_at) source.request_stop();
      });
      return runs.load();
    };
    pool.leave_off_at(&stop);
    CHECK(loop(-1) == 100);
    CHECK_FALSE(pool.leaves_off());
    loop(0);
    CHECK(pool.leaves_off());
    CHECK(loop(-1) == 0);
    pool.leave_off_at(nullptr);
    CHECK_FALSE(pool.leaves_off());
    CHECK(loop(-1) == 100);
  }
}

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

TEST_CASE("what a thread that is held up has not taken is done by another") {
  constexpr int kChunks = 100;
  WorkerPool pool(2);
  // The first chunk of the first share, or the last of the second: its thread gives up the rest.
  for (const int held_up : {0, kChunks - 1}) {
    std::atomic<int> done{0};
    int done_meanwhile = 0;
    pool.parallel_for(kChunks, [&](int chunk) {
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      while (chunk == held_up && done < kChunks - 1 && std::chrono::steady_clock::now() < deadline)
        std::this_thread::yield();
      if (chunk == held_up) done_meanwhile = done;
      ++done;
    });
    CHECK(done_meanwhile == kChunks - 1);
    CHECK(done == kChunks);
  }
}

TEST_CASE("loops run on after the workers fell asleep") {
  WorkerPool pool(3);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> sum{0};
    pool.parallel_for(50, [&](int chunk) { sum += chunk; });
    CHECK(sum == 49 * 50 / 2);
    REQUIRE(others_fall_asleep());
  }
}

TEST_CASE("an idle pool sleeps") {
  WorkerPool pool(4);
  REQUIRE(others_fall_asleep());
  pool.parallel_for(64, [](int) {});
  CHECK(others_fall_asleep());
}

TEST_CASE("a pool that was never used ends") {
  for (int i = 0; i < 100; ++i) WorkerPool pool(4);
  SUCCEED();
}

TEST_CASE("there is at least one physical core") { CHECK(engine::cpu::physical_cores() >= 1); }

}  // namespace efimd::test
