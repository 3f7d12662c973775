#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

namespace efimd::engine::cpu {

/// Physical cores that this process may run on; at least 1.
int physical_cores();

/// Threads that share the chunks of a loop with the calling thread, one loop after another.
///
/// Each thread has a share of neighbouring chunks and takes them in order, because memory is read
/// fastest in one stream. A thread that has finished takes chunks from the back of another's share.
/// A virtual machine's cores are stolen for milliseconds, and so nobody waits for the slowest. Idle
/// workers spin for kSpin, which spans the gaps inside a step, then sleep. Between steps they use
/// no processor time.
///
/// Thread: parallel_for() from one thread at a time. Owns: its threads; the destructor joins them.
/// Fails: the constructor throws std::system_error when a thread cannot be started.
class WorkerPool {
 public:
  /// `threads` in all, the caller included; 1 starts none.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  static constexpr int kChunksMax = (1 << 20) - 1;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// body(chunk) for every chunk in 0 .. chunks - 1, in any order, on any of the threads; returns
  /// when all are done. `body` must not throw and must write to places that no other chunk writes.
  /// chunks <= kChunksMax.
  template <class Body>
  void parallel_for(int chunks, const Body& body) {
    run(
        chunks, [](const void* context, int chunk) { (*static_cast<const Body*>(context))(chunk); },
        &body);
  }

  /// From now on chunks are left out once `stop` fires, until this is called with null. `stop` must
  /// live until then. Thread: as parallel_for().
  void leave_off_at(const std::stop_token* stop) {
    leave_off_.store(stop, std::memory_order_relaxed);
  }
  /// Whether chunks are left out now. If it is false after a loop, the loop is whole.
  bool leaves_off() const {
    const std::stop_token* const stop = leave_off_.load(std::memory_order_relaxed);
    return stop != nullptr && stop->stop_requested();
  }

 private:
  using Call = void (*)(const void* context, int chunk);

  /// The chunks of a loop that a thread has not taken yet.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> left{
        0};  ///< loop number (24 bits), first (20), one past the last (20)
  };

  void run(int chunks, Call call, const void* context);
  /// Takes chunks of the current loop, its own first, until none is left.
  void take_chunks(int thread);
  /// Takes chunks from one end of a share until it is empty; returns how many.
  int take_from(Share& share, bool front);
  void work(int thread);
  void shut_down();

  // One loop. A late worker may read the fields during the setup of the next loop. It uses them
  // only if it then claims a chunk of a share that it had read before. In that case the loop was
  // not finished, so its fields did not change.
  std::atomic<Call> call_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<int> chunks_{0};
  std::atomic<const std::stop_token*> leave_off_{nullptr};
  std::uint64_t number_ = 0;                  ///< of the loop; the caller's
  alignas(64) std::atomic<int> finished_{0};  ///< chunks of the current loop
  alignas(64) std::atomic<int> loop_{0};      ///< idle workers wait on it
  std::atomic<bool> stop_{false};
  std::vector<Share> shares_;  ///< one of each thread, the caller's first
  std::vector<std::thread> workers_;
};

}  // namespace efimd::engine::cpu
