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

/// Moves pages between the device and the store: promotes stored pages, and writes in idle time
/// (write-behind).
///
///   KV-6  A page is written after it gets a source: in idle time (write_one()), or on eviction if
///         that comes first. A page that only excluded documents hold never has a source, and is
///         never written.
///   KV-7  For a keystroke, a page is loaded if that is faster than evaluating its tokens; both
///         speeds are measured. The keystroke waits for it no longer than evaluating the rest of
///         its prompt would take.
///
/// Thread: engine.  Owns: a queue; pool, backend and store outlive it. Without a store it does
/// nothing.
class StoreTier {
 public:
  /// For idle time. If a page takes longer, its disk is not worth using.
  static constexpr auto kIdlePatience = std::chrono::seconds(1);
  /// For a keystroke, until the speed of evaluating is measured.
  static constexpr auto kFirstPatience = std::chrono::milliseconds(100);

  StoreTier(KvPool& pool, Backend& backend, PageStore* store)
      : pool_(&pool), backend_(&backend), store_(store) {}

  /// Announces pages, parents first, that load() will be asked for. The store begins to read those
  /// that it has.
  void want(std::span<const Digest> pages);
  /// A page that a prompt needs and the device lacks.
  struct Missing {
    Digest identity;
    std::optional<PageIndex> parent;
    std::span<const TokenId> tokens;  ///< of the page
    int pages = 1;                    ///< from it to the prompt's end
  };
  /// The page, loaded, sealed and referenced. nullopt if it is not stored, not worth loading, or
  /// late.
  std::optional<PageIndex> load(const Missing& page, Wanted wanted, const std::stop_token& stop);
  /// Whether a keystroke would load this page (KV-7).
  bool loadable(const Digest& page) const { return worth_loading(page) && store_->holds(page); }

  /// Says that a sealed page holds text of `source`.
  void own(PageIndex page, SourceId source);
  /// Hands one page to the store.
  WriteBehind write_one(Leaving leaving);
  /// To be called before the page is evicted.
  void evicting(PageIndex page);
  /// Evaluating `tokens` tokens in one step took `time`.
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
