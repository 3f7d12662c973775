#include "cache_store/store_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "cache_store/loader.h"

namespace efimd::store {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kDayS = 24 * 3600;
constexpr char kDayCounter[] = "write_day";
constexpr char kWrittenCounter[] = "write_day_bytes";

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

/// Bytes in a time, since the start.
struct Speed {
  double bytes = 0, time_s = 0;
  double bytes_per_s() const { return time_s > 0 ? bytes / time_s : 0; }
};

std::int64_t today() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
             .count() /
         kDayS;
}

}  // namespace

/// Shared with the threads, so that one that is abandoned still finds it.
struct StoreService::State {
  explicit State(Settings settings_)
      : settings(std::move(settings_)),
        loader([this](const Digest& page) { return read(page); },
               [this](const Digest& page) { will_read(page); }, settings.load_ahead_bytes_max) {}

  Settings settings;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<Task> tasks;
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
  void stay_in_place();
  void run_task();
  void write_batch();
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

void StoreService::State::tell(const std::string& message) {
  const std::lock_guard lock(mutex);
  if (closing) return;  // who listens may be gone
  status.trouble = message;
  if (settings.store.tell) {
    settings.store.tell(message);
  } else if (untold.size() < kUntoldMax) {
    untold.push_back(message);
  }
}

void StoreService::State::open() {
  Store::Settings of_store = settings.store;
  of_store.tell = [this](const std::string& message) { tell(message); };
  Result<std::unique_ptr<Store>> made = Store::open(std::move(of_store));
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

void StoreService::State::publish_use() {
  {
    const std::lock_guard lock(mutex);
    if (!tasks.empty() || !pages.empty()) return;  // soon again
  }
  const StoreUse use = store->usage();
  std::map<std::string, std::size_t> counts;
  for (const DocumentUse& document : store->documents()) counts[document.uri] += document.pages;
  const std::lock_guard lock(mutex);
  status.use = use;
  status.pages = std::move(counts);
}

bool StoreService::State::may_write() const {
  return !pages.empty() && (closing || Clock::now() >= write_after);
}

void StoreService::State::run() {
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
    stay_in_place();
    if (task) {
      run_task();
    } else {
      write_batch();
    }
    publish_use();
    lock.lock();
    busy = false;
    lock.unlock();
    changed.notify_all();
  }
}

/// A folder that was removed, moved or unmounted takes nothing any more that lasts.
void StoreService::State::stay_in_place() {
  if (store->is_in_place() || Clock::now() < reopen_after) return;
  if (!failing)
    tell(fmt::format("{}: what the store had open there is gone: it opens what is there now",
                     settings.store.folder.string()));
  const Result<void> reopened = store->reopen();
  if (reopened) return;
  reopen_after = Clock::now() + settings.retry_after;
  failed(reopened.error());
}

void StoreService::State::run_task() {
  Task task;
  {
    const std::lock_guard lock(mutex);
    task = std::move(tasks.front());
    tasks.pop_front();
  }
  task(*store);
}

std::vector<PageToWrite> StoreService::State::take_batch() {
  const std::lock_guard lock(mutex);
  std::vector<PageToWrite> batch;
  for (std::size_t bytes = 0; !pages.empty() && bytes < kBatchBytes; pages.pop_front()) {
    bytes += pages.front().bytes.size();
    queued_bytes -= pages.front().bytes.size();
    batch.push_back(std::move(pages.front()));
  }
  return batch;
}

/// Bytes that may still be written today, and counts `bytes` as written. A clock that jumps begins
/// another day, whichever way: one that was far ahead for once must not end writing for good.
std::int64_t StoreService::State::day_allowance(std::size_t bytes) {
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

void StoreService::State::write_batch() {
  const std::vector<PageToWrite> batch = take_batch();
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
      tell(fmt::format("{} MiB were written to the store today: no more until tomorrow",
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

void StoreService::State::failed(const Error& error) {
  if (!std::exchange(failing, true))
    tell(fmt::format("the store cannot be written: {}; tried again every {} s", error.message(),
                     seconds(settings.retry_after)));
  const std::lock_guard lock(mutex);
  write_after = Clock::now() + settings.retry_after;
  pages.clear();
  queued_bytes = 0;
}

void StoreService::State::will_read(const Digest& page) const {
  if (const Store* const opened_store = usable) opened_store->will_read(page);
}

std::optional<Loader::Bytes> StoreService::State::read(const Digest& page) {
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
    if (first) tell("a page of the store is damaged: it is removed and evaluated again");
  }
  return std::nullopt;
}

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
    : state_(std::make_shared<State>(std::move(settings))),
      threads_(new Threads{Threads::Leavable([state = state_] { state->run(); }),
                           Threads::Leavable([state = state_] { state->loader.run(); })}) {}

StoreService::~StoreService() {
  const auto now = Clock::now();
  {
    const std::lock_guard lock(state_->mutex);
    state_->closing = true;
    state_->close_deadline = now + kCloseWriteMax;
  }
  state_->changed.notify_all();
  state_->loader.close();
  threads_->disk.leave(now + kCloseMax);
  threads_->loading.leave(now + kCloseMax);
}

double StoreService::load_bytes_per_s() const { return state_->load_bytes_per_s; }

void StoreService::listen(std::function<void(const std::string&)> tell) {
  const std::lock_guard lock(state_->mutex);
  state_->settings.store.tell = std::move(tell);
  if (!state_->settings.store.tell) return;
  for (const std::string& message : state_->untold) state_->settings.store.tell(message);
  state_->untold.clear();
}

bool StoreService::wait_opened(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, patience, [&] { return state_->opened; });
}

void StoreService::set_arena(ArenaKey key) {
  post([state = state_.get(), key = std::move(key)](Store&) { state->arena = key; });
}

bool StoreService::is_usable() const {
  const std::lock_guard lock(state_->mutex);
  return !state_->opened || state_->status.usable;
}

bool StoreService::holds(const Digest& page) const {
  const Store* const store = state_->usable;
  return store != nullptr && store->holds(page);
}

bool StoreService::takes(std::size_t bytes) const {
  const std::lock_guard lock(state_->mutex);
  return state_->opened && state_->status.usable && !state_->closing &&
         state_->queued_bytes + bytes <= state_->settings.write_queue_bytes_max &&
         Clock::now() + std::chrono::seconds(1) >= state_->write_after;
}

bool StoreService::write(PageToWrite page) {
  if (!takes(page.bytes.size())) return false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->queued_bytes += page.bytes.size();
    state_->pages.push_back(std::move(page));
  }
  state_->changed.notify_all();
  return true;
}

void StoreService::want(std::span<const Digest> pages) { state_->loader.want(pages); }

std::optional<std::vector<std::byte>> StoreService::load(const Digest& page,
                                                         std::chrono::microseconds patience,
                                                         const std::stop_token& stop) {
  return state_->loader.load(page, patience, stop);
}

void StoreService::post(Task task) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->closing || (state_->opened && !state_->status.usable)) return;
    if (state_->tasks.size() >= kTasksMax) return;
    state_->tasks.push_back(std::move(task));
  }
  state_->changed.notify_all();
}

bool StoreService::run(Task task, std::chrono::milliseconds patience) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> ended = done->get_future();
  // The task alone keeps the promise: dropping it breaks the promise, which ends the wait.
  post([task = std::move(task), done = std::move(done)](Store& store) {
    task(store);
    done->set_value();
  });
  if (ended.wait_for(patience) != std::future_status::ready) return false;
  try {
    ended.get();
    return true;
  } catch (const std::future_error&) {  // the task was dropped
    return false;
  }
}

void StoreService::forget_queued(const std::string& uri) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->pages, [&](const PageToWrite& page) {
    if (std::ranges::find(page.sources, uri) == page.sources.end()) return false;
    state_->queued_bytes -= page.bytes.size();
    return true;
  });
}

void StoreService::forget_queued() {
  const std::lock_guard lock(state_->mutex);
  state_->pages.clear();
  state_->queued_bytes = 0;
}

bool StoreService::drain(std::chrono::milliseconds patience) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, patience, [&] {
    return state_->pages.empty() && state_->tasks.empty() && !state_->busy;
  });
}

StoreStatus StoreService::status() const {
  const std::lock_guard lock(state_->mutex);
  StoreStatus status = state_->status;
  status.write_bytes_per_s = state_->write_speed.bytes_per_s();
  status.load_bytes_per_s = state_->load_speed.bytes_per_s();
  return status;
}

}  // namespace efimd::store
