#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace efimd::service {

/// Threads that ask the user's file systems. One that stalls (a network's, a sleeping disk's) holds
/// the threads that asked it, and nobody else.
///
/// Thread: any may call; nothing here waits. Threads are started by one of their own, so that they
/// get its rights (sandbox.h). `begin` runs before each work, whose thread then does no other. They are not waited for
/// by anybody, so work must own all that it touches.
/// Limits: kThreadsMax, kThreadsOfKeyMax of one key, kWaitingMax.
class FileThreads {
 public:
  static constexpr std::size_t kThreadsMax = 16;
  /// An editor whose disk stalls must leave threads for the others.
  static constexpr std::size_t kThreadsOfKeyMax = 2;
  static constexpr std::size_t kWaitingMax = 16384;
  /// After this long without work a thread ends.
  static constexpr std::chrono::milliseconds kIdle{100};

  explicit FileThreads(std::function<void()> begin = {});
  /// Drops what waits.
  ~FileThreads();
  FileThreads(const FileThreads&) = delete;
  FileThreads& operator=(const FileThreads&) = delete;

  /// Runs `work` on one of the threads; that of one `key` (an editor's session) begins in the order of
  /// posting.
  /// False, and nothing done, if too much waits.
  bool post(std::uint64_t key, std::function<void()> work);

 private:
  struct State;
  static void start_threads(const std::shared_ptr<State>& state);
  std::shared_ptr<State> state_;
  std::thread starter_;
};

}  // namespace efimd::service
