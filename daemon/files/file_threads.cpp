#include "daemon/files/file_threads.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

namespace efimd::service {

struct FileThreads::State {
  struct Job {
    std::uint64_t key = 0;
    std::function<void()> work;
  };

  /// The first job whose key may have another thread.
  std::deque<Job>::iterator next() {
    return std::ranges::find_if(waiting, [&](const Job& job) {
      const auto busy = of_key.find(job.key);
      return busy == of_key.end() || busy->second < kThreadsOfKeyMax;
    });
  }

  void run();
  /// Waits; nullopt when the thread is to end.
  std::optional<Job> take();
  void finished(std::uint64_t key);

  std::function<void()> begin;
  std::mutex mutex;  ///< guards all below; no work runs under it
  std::condition_variable changed;
  std::deque<Job> waiting;
  std::map<std::uint64_t, std::size_t> of_key;  ///< threads at work
  std::size_t threads = 0;
  std::size_t idle = 0;
  bool stopped = false;
};

std::optional<FileThreads::State::Job> FileThreads::State::take() {
  std::unique_lock lock(mutex);
  ++idle;
  const bool found =
      changed.wait_for(lock, kIdle, [&] { return stopped || next() != waiting.end(); });
  --idle;
  if (stopped || !found) {
    --threads;
    return std::nullopt;
  }
  const auto place = next();
  ++of_key[place->key];  // what may fail comes first: the job waits on
  Job job = std::move(*place);
  waiting.erase(place);
  changed.notify_all();
  return job;
}

void FileThreads::State::finished(std::uint64_t key) {
  const std::lock_guard lock(mutex);
  if (--of_key[key] == 0) of_key.erase(key);
  changed.notify_all();
}

void FileThreads::State::run() {
  for (;;) {
    std::optional<Job> job;
    try {
      job = take();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex);
      --threads;
      return;
    }
    if (!job) return;
    try {
      if (begin) begin();
      job->work();
    } catch (const std::exception&) {
      // No memory: whoever asked goes by its deadline.
    }
    job->work = nullptr;
    finished(job->key);
    if (!begin) continue;
    const std::lock_guard lock(mutex);
    --threads;
    changed.notify_all();
    return;
  }
}

FileThreads::FileThreads(std::function<void()> begin) : state_(std::make_shared<State>()) {
  state_->begin = std::move(begin);
  starter_ = std::thread([state = state_] { start_threads(state); });
}

FileThreads::~FileThreads() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopped = true;
    state_->waiting.clear();
    state_->changed.notify_all();
  }
  starter_.join();
}

bool FileThreads::post(std::uint64_t key, std::function<void()> work) {
  const std::lock_guard lock(state_->mutex);
  if (state_->stopped || state_->waiting.size() >= kWaitingMax) return false;
  state_->waiting.push_back({key, std::move(work)});
  state_->changed.notify_all();
  return true;
}

void FileThreads::start_threads(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  while (!state->stopped) {
    const bool wanted =
        state->idle == 0 && state->threads < kThreadsMax && state->next() != state->waiting.end();
    if (!wanted) {
      state->changed.wait(lock);
      continue;
    }
    ++state->threads;
    ++state->idle;  // it is about to be; else a second one were started beside it
    lock.unlock();
    bool started = true;
    try {
      // Nobody waits for it: it keeps what it needs alive.
      std::thread([state] {
        {
          const std::lock_guard begun(state->mutex);
          --state->idle;
        }
        state->run();
      }).detach();
    } catch (const std::system_error&) {
      started = false;  // the system has no thread to give; the next change asks again
    }
    lock.lock();
    if (started) continue;
    --state->threads;
    --state->idle;
    state->changed.wait(lock);
  }
}

}  // namespace efimd::service
