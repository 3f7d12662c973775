#include "tests/bench/completion/bounded_queue.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>

using efimd::BoundedQueue;

TEST_CASE("a full queue refuses and leaves the value with its owner") {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  REQUIRE(queue.push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  CHECK_FALSE(queue.push(std::move(second)));
  REQUIRE(second);  // NOLINT(bugprone-use-after-move): refusal leaves it untouched
}

TEST_CASE("a closed queue is drained, then ends") {
  BoundedQueue<int> queue(4);
  REQUIRE(queue.push(1));
  queue.close();
  CHECK_FALSE(queue.push(2));
  CHECK(queue.pop() == 1);
  CHECK(queue.pop() == std::nullopt);
}

TEST_CASE("asking without waiting takes what is there, in order") {
  BoundedQueue<int> queue(4);
  CHECK(queue.try_pop() == std::nullopt);
  REQUIRE(queue.push(1));
  REQUIRE(queue.push(2));
  CHECK(queue.try_pop() == 1);
  CHECK(queue.try_pop() == 2);
  CHECK(queue.try_pop() == std::nullopt);
}

TEST_CASE("a waiting consumer wakes when the queue closes") {
  BoundedQueue<int> queue(1);
  std::optional<int> popped = 7;
  std::thread consumer([&] { popped = queue.pop(); });
  queue.close();
  consumer.join();
  CHECK(popped == std::nullopt);
}
