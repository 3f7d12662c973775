#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cache_store/store.h"

namespace efimd::store {

/// A page on its way to the disk.
struct PageToWrite {
  Digest page;
  std::optional<Digest> parent;
  std::vector<std::string> sources;  ///< as NewPage's
  std::vector<std::byte> bytes;
};

struct StoreStatus {
  bool usable = false;
  std::string trouble;  ///< why not, or the last failure; empty if there was none
  StoreUse use;
  std::uint64_t written_pages = 0, written_bytes = 0;  ///< since start
  std::uint64_t loaded_pages = 0, loaded_bytes = 0;
  std::uint64_t damaged_pages = 0;
  double write_bytes_per_s = 0;              ///< while writing, synced
  double load_bytes_per_s = 0;               ///< while reading, with the check
  std::map<std::string, std::size_t> pages;  ///< of each document
};

struct DiskThread;

/// The store and its two threads: **disk** (SQLite, writing) and **loading** (reading ahead).
///
/// Never fails its owner: without a usable folder nothing is kept, and `tell` says why. If the
/// folder is removed or unmounted, the service opens the folder that then has its name, and reports
/// that once.
///
/// Thread: any, except want() and load(): one, the engine's. A lock and not a plain queue, because
/// commands overtake pages and pages are counted in bytes. Limits: write_queue_bytes_max of pages
/// wait; more are refused. Writes at most write_bytes_per_s_max on average, and
/// write_bytes_per_day_max, also over restarts. Destruction writes waiting pages for at most
/// kCloseWriteMax and takes at most kCloseMax. Then it abandons a thread that a dead file system
/// holds.
class StoreService {
 public:
  static constexpr auto kCloseWriteMax = std::chrono::milliseconds(1000);
  static constexpr auto kCloseMax = std::chrono::milliseconds(1900);
  /// Rows of this many bytes of pages share a sync.
  static constexpr std::size_t kBatchBytes = std::size_t{8} << 20;

  /// Messages that wait for a listener; more are dropped.
  static constexpr std::size_t kUntoldMax = 16;
  /// Tasks that wait; more are dropped. Commands, which somebody waits for, have places of their own.
  static constexpr std::size_t kTasksMax = 4096;
  static constexpr std::size_t kCommandsMax = 256;

  struct Settings {
    Store::Settings store;
    std::size_t write_queue_bytes_max = std::size_t{64} << 20;
    std::size_t load_ahead_bytes_max = std::size_t{32} << 20;
    std::size_t write_bytes_per_s_max = std::size_t{256} << 20;
    std::size_t write_bytes_per_day_max = std::size_t{32} << 30;
    /// The pause after writing or opening failed; a full disk may have room again by then.
    std::chrono::milliseconds retry_after = std::chrono::seconds(60);
    /// How long to wait for another daemon to let go of the folder. One that ends keeps it for at
    /// most kCloseMax, and one that was killed until the system has closed its files.
    std::chrono::milliseconds locked_max = kCloseMax + std::chrono::milliseconds(1100);
  };
  /// Opens the store on the disk thread; returns at once.
  explicit StoreService(Settings settings);
  ~StoreService();
  StoreService(const StoreService&) = delete;
  StoreService& operator=(const StoreService&) = delete;

  /// Waits until the store was opened, or failed to; false if neither happened within `patience`.
  bool wait_opened(std::chrono::milliseconds patience);
  /// Sets the arena for write() from here on.
  void set_arena(ArenaKey key);

  /// False once the store could not be opened.
  bool is_usable() const;
  bool holds(const Digest& page) const;
  /// False if the queue is full or nothing can be written: offer the page again later.
  bool write(PageToWrite page);
  /// Whether the queue has room and there is a store to write to.
  bool takes(std::size_t bytes) const;
  /// As Loader's.
  void want(std::span<const Digest> pages);
  std::optional<std::vector<std::byte>> load(const Digest& page, std::chrono::microseconds patience,
                                             const std::stop_token& stop);

  using Task = std::function<void(Store&)>;
  /// Runs the task on the disk thread before waiting pages, in the order of posting. Drops it if
  /// the store is not usable or ends, or if too many wait: then it is false.
  bool post(Task task);
  /// post() for what somebody waits for.
  bool post_command(Task task);
  /// post(), and waits; false if the task was dropped or takes longer than `patience`.
  bool run(Task task, std::chrono::milliseconds patience);
  /// Forgets pages of this document that wait to be written.
  void forget_queued(const std::string& uri);
  /// Forgets all of them.
  void forget_queued();
  /// Waits until every waiting page was written or dropped; for commands and tests.
  bool drain(std::chrono::milliseconds patience);

  StoreStatus status() const;
  /// StoreStatus::load_bytes_per_s; costs nothing.
  double load_bytes_per_s() const;
  /// From here on, reports failures to `tell` on the thread that found them, under a lock.
  /// Failures that nobody heard yet are reported at once. nullptr: nobody listens.
  void listen(std::function<void(const std::string&)> tell);

 private:
  bool post(Task task, std::size_t tasks_max);
  std::shared_ptr<DiskThread> disk_;
  struct Threads;
  std::unique_ptr<Threads> threads_;
};

}  // namespace efimd::store
