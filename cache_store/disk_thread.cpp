#include "cache_store/disk_thread.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <new>

#include "base/wipe.h"

namespace efimd::store {

namespace {

constexpr std::int64_t kDayS = 24 * 3600;
/// The pause before a folder that another daemon has is tried again.
constexpr std::chrono::milliseconds kLockedAgain{20};
constexpr char kDayCounter[] = "write_day";
constexpr char kWrittenCounter[] = "write_day_bytes";

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::int64_t today() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() /
         kDayS;
}

}  // namespace

void DiskThread::tell(const std::string& message) {
  const std::lock_guard lock(mutex);
  if (closing) return;  // who listens may be gone
  status.trouble = message;
  if (settings.store.tell) {
    settings.store.tell(message);
  } else if (untold.size() < StoreService::kUntoldMax) {
    untold.push_back(message);
  }
}

Result<std::unique_ptr<Store>> DiskThread::open_unlocked() {
  Store::Settings of_store = settings.store;
  of_store.tell = [this](const std::string& message) { tell(message); };
  const Clock::time_point end = Clock::now() + settings.locked_max;
  for (;;) {
    Result<std::unique_ptr<Store>> made = Store::open(of_store);
    if (made || made.error().fault != Fault::kNotReady || Clock::now() >= end) return made;
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, kLockedAgain, [&] { return closing; })) return made;
  }
}

void DiskThread::open() {
  Result<std::unique_ptr<Store>> made = open_unlocked();
  if (made) {
    store = std::move(*made);
    usable = store.get();
    publish_use();
  } else {
    tell("nothing is kept on disk: " + made.error().message());
  }
  {
    const std::lock_guard lock(mutex);
    status.usable = store != nullptr;
    opened = true;
    if (!store) tasks.clear();
  }
  changed.notify_all();
}

void DiskThread::publish_use() {
  {
    const std::lock_guard lock(mutex);
    if (!tasks.empty() || !pages.empty()) return;  // soon again
  }
  const StoreUse use = store->usage();
  std::map<std::string, std::size_t> counts = store->page_counts();
  const std::lock_guard lock(mutex);
  status.use = use;
  status.pages = std::move(counts);
}

bool DiskThread::may_write() const {
  return !pages.empty() && (closing || Clock::now() >= write_after);
}

void DiskThread::run() {
  open();
  if (!store) return;
  for (;;) {
    std::unique_lock lock(mutex);
    while (!closing && tasks.empty() && !may_write()) {
      if (pages.empty()) {
        changed.wait(lock);
      } else {
        changed.wait_until(lock, write_after);
      }
    }
    const bool all_done = pages.empty() && tasks.empty();
    if (closing && (all_done || Clock::now() >= close_deadline)) {
      tasks.clear();
      lock.unlock();
      store->close_database();
      return;
    }
    busy = true;
    const bool task = !tasks.empty();
    lock.unlock();
    try {
      stay_in_place();
      if (task) {
        run_task();
      } else {
        write_batch();
      }
      publish_use();
    } catch (const std::bad_alloc&) {
      // Whoever waits for the task hears that it was dropped.
    }
    lock.lock();
    busy = false;
    lock.unlock();
    changed.notify_all();
  }
}

/// A folder that was removed, moved or unmounted takes nothing any more that lasts.
void DiskThread::stay_in_place() {
  if (store->is_in_place() || Clock::now() < reopen_after) return;
  if (!failing)
    tell(fmt::format(
        "{}: the files that the store had open are gone; it opens those that are there now",
        settings.store.folder.string()));
  const Result<void> reopened = store->reopen();
  if (reopened) return;
  reopen_after = Clock::now() + settings.retry_after;
  failed(reopened.error());
}

void DiskThread::run_task() {
  StoreService::Task task;
  {
    const std::lock_guard lock(mutex);
    task = std::move(tasks.front());
    tasks.pop_front();
  }
  task(*store);
}

std::vector<PageToWrite> DiskThread::take_batch() {
  const std::lock_guard lock(mutex);
  std::vector<PageToWrite> batch;
  for (std::size_t bytes = 0; !pages.empty() && bytes < StoreService::kBatchBytes;
       pages.pop_front()) {
    bytes += pages.front().bytes.size();
    queued_bytes -= pages.front().bytes.size();
    batch.push_back(std::move(pages.front()));
  }
  return batch;
}

/// Bytes that may still be written today, and counts `bytes` as written. A clock that jumps begins
/// another day, whichever way: one that was far ahead for once must not end writing for good.
std::int64_t DiskThread::day_allowance(std::size_t bytes) {
  const std::int64_t day = store->counter(kDayCounter).value_or(0);
  std::int64_t written = store->counter(kWrittenCounter).value_or(0);
  if (today() != day) {
    static_cast<void>(store->set_counter(kDayCounter, today()));
    written = 0;
  }
  static_cast<void>(
      store->set_counter(kWrittenCounter, written + static_cast<std::int64_t>(bytes)));
  return static_cast<std::int64_t>(settings.write_bytes_per_day_max) - written;
}

void DiskThread::write_batch() {
  std::vector<PageToWrite> batch = take_batch();
  try {
    write(batch);
  } catch (const std::bad_alloc&) {
    // They are lost, and evaluated again; what they hold must not stay in freed memory.
  }
  for (PageToWrite& page : batch) wipe(page.bytes);
}

void DiskThread::write(const std::vector<PageToWrite>& batch) {
  std::vector<NewPage> fresh;
  std::size_t bytes = 0;
  for (const PageToWrite& page : batch) {
    for (const std::string& source : page.sources)
      if (const auto added = store->add_source(page.page, source); !added)
        return failed(added.error());
    if (store->holds(page.page)) continue;
    fresh.push_back({page.page, page.parent, page.sources, page.bytes});
    bytes += page.bytes.size();
  }
  if (fresh.empty()) return;
  if (day_allowance(bytes) <= 0) {
    if (!std::exchange(day_full, true))
      tell(fmt::format("{} MiB were written to the store today; no more until tomorrow",
                       settings.write_bytes_per_day_max >> 20U));
    return;
  }
  day_full = false;
  const auto begin = Clock::now();
  const Result<int> home = store->use_arena(arena);
  const Result<std::size_t> kept =
      home ? store->keep(*home, fresh) : Result<std::size_t>(tl::unexpected(home.error()));
  if (!kept) return failed(kept.error());
  const auto end = Clock::now();
  const std::lock_guard lock(mutex);
  write_speed.bytes += static_cast<double>(bytes);
  write_speed.time_s += seconds(end - begin);
  write_after = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                            static_cast<double>(bytes) / static_cast<double>(std::max<std::size_t>(
                                                             settings.write_bytes_per_s_max, 1))));
  if (std::exchange(failing, false)) status.trouble.clear();
  status.written_pages += *kept;
  status.written_bytes += bytes;
}

void DiskThread::failed(const Error& error) {
  if (!std::exchange(failing, true))
    tell(fmt::format("the store cannot be written: {}; the next try is in {} s", error.message(),
                     seconds(settings.retry_after)));
  const std::lock_guard lock(mutex);
  write_after = Clock::now() + settings.retry_after;
  for (PageToWrite& page : pages) wipe(page.bytes);
  pages.clear();
  queued_bytes = 0;
}

void DiskThread::will_read(const Digest& page) const {
  if (const Store* const opened_store = usable) opened_store->will_read(page);
}

std::optional<Loader::Bytes> DiskThread::read(const Digest& page) {
  const Store* const opened_store = usable;
  if (opened_store == nullptr) return std::nullopt;
  const std::optional<std::size_t> size = opened_store->page_bytes(page);
  if (!size) return std::nullopt;
  Loader::Bytes bytes(*size);
  const auto begin = Clock::now();
  const Store::Read outcome = opened_store->read(page, bytes);
  const auto end = Clock::now();
  if (outcome == Store::Read::kDone) {
    const std::lock_guard lock(mutex);
    load_speed.bytes += static_cast<double>(*size);
    load_speed.time_s += seconds(end - begin);
    load_bytes_per_s = load_speed.bytes_per_s();
    ++status.loaded_pages;
    status.loaded_bytes += *size;
    return bytes;
  }
  if (outcome == Store::Read::kDamaged) {
    std::unique_lock lock(mutex);
    const bool first = status.damaged_pages++ == 0;
    tasks.emplace_back([page](Store& each) { static_cast<void>(each.drop(page)); });
    lock.unlock();
    changed.notify_all();
    if (first) tell("a page of the store is damaged; it is removed and evaluated again");
  }
  return std::nullopt;
}

}  // namespace efimd::store
