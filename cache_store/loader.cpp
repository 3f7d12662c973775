#include "cache_store/loader.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/wipe.h"

namespace efimd::store {

void Loader::close() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
}

void Loader::want(std::span<const Digest> pages) {
  {
    const std::lock_guard lock(mutex_);
    wanted_ = {pages.begin(), pages.end()};
    for (auto& [page, bytes] : loaded_)
      if (!wanted_.contains(page)) wipe(bytes);
    std::erase_if(loaded_, [&](const auto& each) { return !wanted_.contains(each.first); });
    loaded_bytes_ = 0;
    for (const auto& [page, bytes] : loaded_) loaded_bytes_ += bytes.size();
    queue_.clear();
    ahead_ = 0;
    for (const Digest& page : pages)
      if (!loaded_.contains(page) && reading_ != page) queue_.push_back(page);
  }
  changed_.notify_all();
}

std::optional<Loader::Bytes> Loader::load(const Digest& page, std::chrono::microseconds patience,
                                          const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!loaded_.contains(page) && reading_ != page) {
    std::erase(queue_, page);
    queue_.push_front(page);
  }
  wanted_.insert(page);
  awaited_ = page;
  changed_.notify_all();
  const auto settled = [&] {
    return closing_ || loaded_.contains(page) ||
           (reading_ != page && std::ranges::find(queue_, page) == queue_.end());
  };
  changed_.wait_for(lock, stop, patience, settled);
  awaited_.reset();
  auto taken = loaded_.extract(page);
  if (taken.empty()) return std::nullopt;
  loaded_bytes_ -= taken.mapped().size();
  changed_.notify_all();
  return std::move(taken.mapped());
}

bool Loader::may_read() const {
  if (queue_.empty()) return false;
  return loaded_bytes_ < bytes_max_ || queue_.front() == awaited_;
}

/// The queue's first pages that the system does not know of yet.
std::vector<Digest> Loader::take_ahead() {
  std::vector<Digest> fresh;
  for (; ahead_ < std::min(queue_.size(), kAheadPages); ++ahead_) fresh.push_back(queue_[ahead_]);
  return fresh;
}

void Loader::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || may_read(); });
    if (closing_) return;
    const std::vector<Digest> soon = take_ahead();
    const Digest page = queue_.front();
    queue_.pop_front();
    ahead_ -= std::min<std::size_t>(ahead_, 1);
    reading_ = page;
    lock.unlock();
    std::optional<Bytes> bytes;
    try {
      for (const Digest& each : soon) will_read_(each);
      bytes = read_(page);
    } catch (const std::bad_alloc&) {
      // It is evaluated.
    }
    lock.lock();
    reading_.reset();
    if (bytes && wanted_.contains(page)) {
      loaded_bytes_ += bytes->size();
      loaded_.insert_or_assign(page, std::move(*bytes));
    } else if (bytes) {
      wipe(*bytes);
    }
    changed_.notify_all();
  }
}

}  // namespace efimd::store
