#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/digest.h"

namespace efimd::store {

/// Reads pages before they are needed, on a thread of its own. So a read does not wait for a
/// write's sync, and a keystroke does not wait for a read that it does not need.
///
/// Thread: want() and load() from one, run() on its own until close(). A lock and not a message,
/// because the caller that waits for a page gives up after a time.  Owns: pages that were read and
/// not yet taken.
/// Limits: bytes_max of these; then reading waits. A page that is larger than that is still read.
class Loader {
 public:
  using Bytes = std::vector<std::byte>;
  /// Reads one page, on the loader's thread; nullopt if there is none.
  using Read = std::function<std::optional<Bytes>(const Digest&)>;
  /// Lets the system begin to read a page, on the loader's thread, so that the disk is not idle
  /// while another page is checked.
  using WillRead = std::function<void(const Digest&)>;
  /// Pages that the system reads at a time.
  static constexpr std::size_t kAheadPages = 8;
  Loader(Read read, WillRead will_read, std::size_t bytes_max)
      : read_(std::move(read)), will_read_(std::move(will_read)), bytes_max_(bytes_max) {}

  /// Reads wanted pages; returns soon after close(), if the file system does.
  void run();
  void close();

  /// Announces that these pages will be needed, in this order. Forgets pages of an earlier call
  /// that are not among them. Returns at once.
  void want(std::span<const Digest> pages);
  /// The page; waits for it for at most `patience`. nullopt if it cannot be read or is not there in
  /// time, or if `stop` fires.
  std::optional<Bytes> load(const Digest& page, std::chrono::microseconds patience,
                            const std::stop_token& stop);

 private:
  bool may_read() const;
  std::vector<Digest> take_ahead();

  const Read read_;
  const WillRead will_read_;
  const std::size_t bytes_max_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Digest> queue_;
  std::size_t ahead_ = 0;  ///< about how many of the queue's first pages will_read_ has announced
  std::optional<Digest> reading_;
  std::optional<Digest> awaited_;  ///< by load(): read also when bytes_max is reached
  std::unordered_map<Digest, Bytes> loaded_;
  std::size_t loaded_bytes_ = 0;
  std::unordered_set<Digest> wanted_;
  bool closing_ = false;
};

}  // namespace efimd::store
