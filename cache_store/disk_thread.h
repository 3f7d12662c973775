#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache_store/loader.h"
#include "cache_store/store_service.h"

namespace efimd::store {

/// The disk thread of a StoreService, what waits for it, and what both tell of their work. The
/// loading thread reads through it, too.
///
/// Thread: run() is the disk thread's, `loader.run()` the loading thread's. `arena`, `reopen_after`,
/// `failing`, `day_full` and `store` are the disk thread's alone; `mutex` guards the fields that
/// others use, too. Owner: both threads and the service share it, so that an abandoned thread still
/// finds it. Limits and failures: StoreService's.
struct DiskThread {
  using Clock = std::chrono::steady_clock;

  /// Bytes and the time that they took, since the start.
  struct Speed {
    double bytes = 0, time_s = 0;
    double bytes_per_s() const { return time_s > 0 ? bytes / time_s : 0; }
  };

  explicit DiskThread(StoreService::Settings settings_)
      : settings(std::move(settings_)),
        loader([this](const Digest& page) { return read(page); },
               [this](const Digest& page) { will_read(page); }, settings.load_ahead_bytes_max) {}

  StoreService::Settings settings;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<StoreService::Task> tasks;
  std::deque<PageToWrite> pages;
  std::size_t queued_bytes = 0;
  ArenaKey arena;
  bool opened = false;  ///< or failed to
  bool busy = false;    ///< with a task or a batch
  bool closing = false;
  Clock::time_point close_deadline;
  Clock::time_point write_after;  ///< rate, or a failure
  Clock::time_point reopen_after;
  bool failing = false;  ///< writing, or opening the folder anew, failed the last time
  bool day_full = false;
  StoreStatus status;
  Speed write_speed, load_speed;
  std::atomic<double> load_bytes_per_s{0};
  std::vector<std::string> untold;

  std::unique_ptr<Store> store;               ///< the disk thread's, read() and holds() apart
  std::atomic<const Store*> usable{nullptr};  ///< store, once it is open
  Loader loader;

  // The disk thread.
  void run();
  void open();
  /// Waits for the folder's other user, for at most Settings::locked_max.
  Result<std::unique_ptr<Store>> open_unlocked();
  void stay_in_place();
  void run_task();
  void write_batch();
  void write(const std::vector<PageToWrite>& batch);
  std::vector<PageToWrite> take_batch();
  bool may_write() const;
  std::int64_t day_allowance(std::size_t bytes);
  void failed(const Error& error);
  void publish_use();

  // The loading thread.
  void will_read(const Digest& page) const;
  std::optional<Loader::Bytes> read(const Digest& page);

  void tell(const std::string& message);
};

}  // namespace efimd::store
