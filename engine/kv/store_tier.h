#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <stop_token>
#include <utility>

#include "engine/kv/kv_pool.h"
#include "engine/kv/page_store.h"
#include "engine/types.h"

namespace efimd::engine {

class Backend;

/// Who wants pages: a keystroke that waits, or idle time.
enum class Wanted { kNow, kInIdleTime };

/// The tier of KV behind the device's pages: promotes pages from the store, and writes behind.
///
///   KV-6  A page is written once it has a source, in idle time (write_one()) or when it is
///         evicted before that. One that only excluded documents hold never has a source, and is
///         never written.
///   KV-7  For a keystroke a page is loaded when that is faster than evaluating its tokens, by the
///         speeds measured on both sides; it waits no longer than evaluating what would not be
///         loaded then.
///
/// Thread: engine.  Owns: a queue; pool, backend and store outlive it. Without a store it does
/// nothing.
class StoreTier {
 public:
  /// In idle time: a page that takes longer is on a disk not worth using.
  static constexpr auto kIdlePatience = std::chrono::seconds(1);
  /// For a keystroke, while evaluating was not measured yet.
  static constexpr auto kFirstPatience = std::chrono::milliseconds(100);

  StoreTier(KvPool& pool, Backend& backend, PageStore* store)
      : pool_(&pool), backend_(&backend), store_(store) {}

  /// Pages, parents first, that load() will be asked for: those that the store has begin to be
  /// read.
  void want(std::span<const Digest> pages);
  /// A page that a prompt needs and the device has not.
  struct Missing {
    Digest identity;
    std::optional<PageIndex> parent;
    std::span<const TokenId> tokens;  ///< of the page
    int pages = 1;                    ///< from it to the prompt's end
  };
  /// Loaded, sealed and referenced; nullopt when it is not stored, not worth it, or not there in
  /// time.
  std::optional<PageIndex> load(const Missing& page, Wanted wanted, const std::stop_token& stop);
  /// Whether a keystroke would have this page loaded (KV-7).
  bool loadable(const Digest& page) const { return worth_loading(page) && store_->holds(page); }

  /// A sealed page holds text of `source`.
  void own(PageIndex page, SourceId source);
  /// Hands one page to the store.
  WriteBehind write_one(Leaving leaving);
  /// The page is about to be evicted.
  void evicting(PageIndex page);
  /// Evaluating so many tokens in one step took so long.
  void measured(int tokens, std::chrono::microseconds time);

 private:
  bool worth_loading(const Digest& page) const {
    return store_ != nullptr &&
           (evaluate_time_.count() == 0 || store_->load_time(page) < evaluate_time_);
  }
  std::chrono::microseconds patience(Wanted wanted, int pages) const;
  bool write(PageIndex page);
  /// Tells the device of a page that write() will read.
  void expect(PageIndex page, const Digest& identity);

  KvPool* pool_;
  Backend* backend_;
  PageStore* store_;
  std::chrono::microseconds evaluate_time_{0};  ///< of a page's tokens; zero: not measured yet
  std::deque<std::pair<PageIndex, Digest>> unwritten_;  ///< parents before children
};

}  // namespace efimd::engine
