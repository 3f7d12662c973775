#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/error.h"
#include "engine/kv/kv_pool.h"
#include "engine/kv/store_tier.h"
#include "engine/types.h"

namespace efimd::engine {

class Backend;

/// One live sequence of tokens and the KV pages that hold it.
///
/// The leading, full pages of the table are sealed and shared; the rest are private. Only tokens
/// whose KV was computed count as held. A step reserves rows, evaluates into them, then commits or
/// abandons all of them.
///
/// Thread: engine. Owns: references to its pages. The pages belong to KvPool and their bytes to
/// Backend. Both outlive it, and so does the tier.
class KvSequence {
 public:
  KvSequence(KvPool& pool, Backend& backend, StoreTier& tier)
      : pool_(&pool), backend_(&backend), tier_(&tier) {}
  ~KvSequence() { drop_pages(0); }
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;

  std::span<const TokenId> tokens() const { return tokens_; }
  int size() const { return static_cast<int>(tokens_.size()); }
  /// Covers held tokens, and reserved rows between reserve() and commit().
  std::span<const PageIndex> page_table() const { return table_; }

  /// Makes the sequence hold the leading tokens of `tokens` that have KV. It reuses its own common
  /// prefix, then full pages of any sequence, resident or loaded from the store. Returns how many;
  /// drops everything else. Never evaluates the model. Fails only as the Backend does, and then
  /// holds a part of the prefix.
  Result<int> reuse(std::span<const TokenId> tokens, Wanted wanted = Wanted::kNow,
                    const std::stop_token& stop = {});

  /// Makes this sequence, which must be empty, hold the tokens of `other`. Full pages are shared,
  /// the partial one is copied (KV-2). kWindowFull, and still empty, if there is no page for that.
  Result<void> share(const KvSequence& other);

  /// Drops the tokens after the first `count`. A sealed page is never written again. If the cut
  /// lies inside one, its leading rows are copied into a private page. If no page is left for that,
  /// the page is unsealed unless others use it. If they do, the cut moves down to the page's start.
  /// Returns the tokens held.
  Result<int> rewind_to(int count);

  /// Makes the table cover `rows` more tokens. kWindowFull, and nothing changed, if the pool is out
  /// of pages.
  Result<void> reserve(int rows);
  /// Call it when the KV of `tokens` is computed; they are at most as many as were reserved. The
  /// sequence then holds them, and full pages are sealed.
  void commit(std::span<const TokenId> tokens);
  /// Gives back reserved pages that hold no committed row.
  void abandon();

  /// Moves the rows of the last page, if that is private, into a page of zeros, and gives the old
  /// one back. Behind the rows, it may hold KV of a text that had it before. Drops the rows if that
  /// cannot be done.
  void leave_leftovers();

  /// Says whose text the sequence holds, from now on and in the pages that it has.
  void set_source(SourceId source);
  /// Says whose text its first page shows, too, as long as it has a source.
  void set_shown(std::span<const SourceId> shown);
  /// Tokens of its pages that came from the store and were not counted before.
  int take_restored();

  /// Pages that `count` tokens would take from the pool, in addition to the table's.
  int pages_missing(int count) const { return std::max(0, pages_for(count) - table_size()); }

 private:
  static int pages_for(int tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }
  int table_size() const { return static_cast<int>(table_.size()); }
  std::optional<PageIndex> parent_of(int page) const;
  /// Says whose the sealed page number `page` of the table is.
  void own(int page);
  /// Pages of `tokens` from index `first` on, referenced, up to the first that is not available.
  std::vector<PageIndex> find_pages(std::span<const TokenId> tokens, int first, Wanted wanted,
                                    const std::stop_token& stop);
  /// Releases the table's pages from `first` on, children first.
  void drop_pages(int first);
  /// Makes the last page, which is sealed, private and keeps its leading `rows`; false if it
  /// cannot.
  Result<bool> make_private(int rows);

  KvPool* pool_;
  Backend* backend_;
  StoreTier* tier_;
  SourceId source_ = SourceId::kNone;
  std::vector<SourceId> shown_;
  std::vector<TokenId> tokens_;
  std::vector<PageIndex> table_;
  int sealed_ = 0;        ///< leading pages of the table that are sealed: size() / P between calls
  bool is_clean_ = true;  ///< nothing was written or given up since leave_leftovers()
};

}  // namespace efimd::engine
