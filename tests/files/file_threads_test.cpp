#include "daemon/files/file_threads.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <memory>
#include <vector>

using efimd::service::FileThreads;

namespace {

constexpr auto kPatience = std::chrono::seconds(60);

/// Work that stalls until the test ends.
struct Stall {
  std::promise<void> promise;
  std::shared_future<void> end = promise.get_future().share();
  std::function<void()> work() {
    return [end = end] { end.wait(); };
  }
  ~Stall() { promise.set_value(); }
};

/// Posts work of this key and waits for it.
bool is_done(FileThreads& threads, std::uint64_t key) {
  auto done = std::make_shared<std::promise<void>>();
  auto ended = done->get_future();
  REQUIRE(threads.post(key, [done] { done->set_value(); }));
  return ended.wait_for(kPatience) == std::future_status::ready;
}

}  // namespace

TEST_CASE("work that stalls leaves threads for the work of others") {
  Stall stall;
  FileThreads threads;
  for (int i = 0; i < 100; ++i) REQUIRE(threads.post(1, stall.work()));
  for (std::uint64_t key = 2; key < 20; ++key) CHECK(is_done(threads, key));
}

TEST_CASE("file threads end without what stalls") {
  Stall stall;
  FileThreads threads;
  for (std::uint64_t key = 0; key < 2 * FileThreads::kThreadsMax; ++key)
    REQUIRE(threads.post(key, stall.work()));
}

TEST_CASE("work beyond a limit is refused") {
  Stall stall;
  FileThreads threads;
  std::size_t taken = 0;
  while (taken < 2 * FileThreads::kWaitingMax && threads.post(1, stall.work())) ++taken;
  CHECK(taken >= FileThreads::kWaitingMax);
  CHECK(taken <= FileThreads::kWaitingMax + FileThreads::kThreadsOfKeyMax);
}

TEST_CASE("work that throws costs only itself") {
  FileThreads threads;
  REQUIRE(threads.post(1, [] { throw std::bad_alloc(); }));
  CHECK(is_done(threads, 1));
}

TEST_CASE("each thread begins with what it is given") {
  auto begun = std::make_shared<std::atomic<int>>(0);
  FileThreads threads([begun] { ++*begun; });
  CHECK(is_done(threads, 1));
  CHECK(*begun >= 1);
}
