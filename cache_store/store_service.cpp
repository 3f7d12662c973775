#include "cache_store/store_service.h"

#include <algorithm>
#include <future>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>

#include "base/wipe.h"
#include "cache_store/disk_thread.h"

namespace efimd::store {

namespace {

using Clock = std::chrono::steady_clock;

/// Tells both threads to end.
void close(DiskThread& disk) {
  {
    const std::lock_guard lock(disk.mutex);
    disk.closing = true;
    disk.close_deadline = Clock::now() + StoreService::kCloseWriteMax;
  }
  disk.changed.notify_all();
  disk.loader.close();
}

}  // namespace

struct StoreService::Threads {
  /// A thread and its end; packaged, so that one can wait for it for a time only.
  struct Leavable {
    std::future<void> ended;
    std::thread thread;
    explicit Leavable(std::function<void()> work) {
      std::packaged_task<void()> task(std::move(work));
      ended = task.get_future();
      thread = std::thread(std::move(task));
    }
    Leavable(const Leavable&) = delete;
    Leavable& operator=(const Leavable&) = delete;
    ~Leavable() {
      if (thread.joinable()) thread.detach();  // the other could not be started
    }
    void leave(Clock::time_point deadline) {
      if (ended.wait_until(deadline) == std::future_status::ready) {
        thread.join();
      } else {
        thread.detach();
      }
    }
  };
  Leavable disk, loading;
};

StoreService::StoreService(Settings settings)
    : disk_(std::make_shared<DiskThread>(std::move(settings))) {
  try {
    threads_.reset(new Threads{Threads::Leavable([disk = disk_] { disk->run(); }),
                               Threads::Leavable([disk = disk_] { disk->loader.run(); })});
  } catch (const std::system_error&) {
    close(*disk_);  // the system has a thread less to give than it needs
    throw;
  }
}

StoreService::~StoreService() {
  const auto now = Clock::now();
  close(*disk_);
  threads_->disk.leave(now + kCloseMax);
  threads_->loading.leave(now + kCloseMax);
}

double StoreService::load_bytes_per_s() const { return disk_->load_bytes_per_s; }

void StoreService::listen(std::function<void(const std::string&)> tell) {
  const std::lock_guard lock(disk_->mutex);
  disk_->settings.store.tell = std::move(tell);
  if (!disk_->settings.store.tell) return;
  for (const std::string& message : disk_->untold) disk_->settings.store.tell(message);
  disk_->untold.clear();
}

bool StoreService::wait_opened(std::chrono::milliseconds patience) {
  std::unique_lock lock(disk_->mutex);
  return disk_->changed.wait_for(lock, patience, [&] { return disk_->opened; });
}

void StoreService::set_arena(ArenaKey key) {
  static_cast<void>(
      post([disk = disk_.get(), key = std::move(key)](Store&) { disk->arena = key; }));
}

bool StoreService::is_usable() const {
  const std::lock_guard lock(disk_->mutex);
  return !disk_->opened || disk_->status.usable;
}

bool StoreService::holds(const Digest& page) const {
  const Store* const store = disk_->usable;
  return store != nullptr && store->holds(page);
}

bool StoreService::takes(std::size_t bytes) const {
  const std::lock_guard lock(disk_->mutex);
  return disk_->opened && disk_->status.usable && !disk_->closing &&
         disk_->queued_bytes + bytes <= disk_->settings.write_queue_bytes_max &&
         Clock::now() + std::chrono::seconds(1) >= disk_->write_after;
}

bool StoreService::write(PageToWrite page) {
  if (!takes(page.bytes.size())) return false;
  {
    const std::lock_guard lock(disk_->mutex);
    disk_->queued_bytes += page.bytes.size();
    disk_->pages.push_back(std::move(page));
  }
  disk_->changed.notify_all();
  return true;
}

void StoreService::want(std::span<const Digest> pages) { disk_->loader.want(pages); }

std::optional<std::vector<std::byte>> StoreService::load(const Digest& page,
                                                         std::chrono::microseconds patience,
                                                         const std::stop_token& stop) {
  return disk_->loader.load(page, patience, stop);
}

bool StoreService::post(Task task) { return post(std::move(task), kTasksMax); }

bool StoreService::post_command(Task task) {
  return post(std::move(task), kTasksMax + kCommandsMax);
}

bool StoreService::post(Task task, std::size_t tasks_max) {
  {
    const std::lock_guard lock(disk_->mutex);
    if (disk_->closing || (disk_->opened && !disk_->status.usable)) return false;
    if (disk_->tasks.size() >= tasks_max) return false;
    disk_->tasks.push_back(std::move(task));
  }
  disk_->changed.notify_all();
  return true;
}

bool StoreService::run(Task task, std::chrono::milliseconds patience) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> ended = done->get_future();
  // The task alone keeps the promise: dropping it breaks the promise, which ends the wait.
  static_cast<void>(post_command([task = std::move(task), done = std::move(done)](Store& store) {
    task(store);
    done->set_value();
  }));
  if (ended.wait_for(patience) != std::future_status::ready) return false;
  try {
    ended.get();
    return true;
  } catch (const std::future_error&) {  // the task was dropped
    return false;
  }
}

void StoreService::forget_queued(const std::string& uri) {
  const std::lock_guard lock(disk_->mutex);
  std::unordered_set<Digest> forgotten;
  // Parents wait before their children.
  std::erase_if(disk_->pages, [&](PageToWrite& page) {
    const bool behind = page.parent && forgotten.contains(*page.parent);
    if (!behind && std::ranges::find(page.sources, uri) == page.sources.end()) return false;
    forgotten.insert(page.page);
    disk_->queued_bytes -= page.bytes.size();
    wipe(page.bytes);
    return true;
  });
}

void StoreService::forget_queued() {
  const std::lock_guard lock(disk_->mutex);
  for (PageToWrite& page : disk_->pages) wipe(page.bytes);
  disk_->pages.clear();
  disk_->queued_bytes = 0;
}

bool StoreService::drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(disk_->mutex);
  return disk_->changed.wait_for(
      lock, patience, [&] { return disk_->pages.empty() && disk_->tasks.empty() && !disk_->busy; });
}

StoreStatus StoreService::status() const {
  const std::lock_guard lock(disk_->mutex);
  StoreStatus status = disk_->status;
  status.write_bytes_per_s = disk_->write_speed.bytes_per_s();
  status.load_bytes_per_s = disk_->load_speed.bytes_per_s();
  return status;
}

}  // namespace efimd::store
