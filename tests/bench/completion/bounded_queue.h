#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace efimd {

/// Values from any thread to one consumer, in order.
///
/// Thread: any.  Limits: capacity; push() refuses if full, so a producer decides what to drop.
/// close() lets the consumer drain what is queued, then pop() returns nullopt.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity) : capacity_(capacity) {}

  /// False if the queue is full or closed; `value` is then untouched.
  [[nodiscard]] bool push(T&& value) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || values_.size() >= capacity_) return false;
      values_.push_back(std::move(value));
    }
    arrived_.notify_one();
    return true;
  }

  /// Waits for a value; nullopt once the queue is closed and empty.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return closed_ || !values_.empty(); });
    if (values_.empty()) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

  /// A value that is there already; nullopt if there is none.
  std::optional<T> try_pop() {
    const std::lock_guard lock(mutex_);
    if (values_.empty()) return std::nullopt;
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_all();
  }

 private:
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace efimd
