#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "engine/kv/page_order.h"
#include "engine/kv/page_store.h"
#include "engine/types.h"

namespace efimd::engine {

/// Random bytes. Who does not know them cannot look for two texts whose pages have one identity.
using PageKey = std::array<std::byte, 192>;

/// Bookkeeping of the device's KV pages; the bytes are the Backend's.
///
///   KV-1  A full page's identity is the digest of (root = model and KV type, parent page's
///         identity, its token ids), under a key of this user if there is one.
///   KV-2  Full pages are immutable and shared by reference count; a partial page belongs to one
///         sequence.
///   KV-3  A page is evicted only if no sequence uses it and no resident page has it as parent
///         (leaves first). The oldest use goes first; documents that the user returns to are kept
///         longer (PageOrder).
///
/// State of a page:
///   free -> private (one sequence writes it) -> sealed (full, indexed, shared) -> free (evicted)
///
/// An owner that references a page also references its parents, and releases children first. So
/// every page that nobody references can be evicted, sooner or later.
///
/// Thread: engine.  Never fails its owner: if every page is referenced, take() says kWindowFull.
class KvPool {
 public:
  KvPool(int page_count, Digest root, const std::optional<PageKey>& key = std::nullopt);

  /// A page to write into, evicting one if none is free.
  Result<PageIndex> take();
  /// Gives a private page back.
  void give_back(PageIndex page);

  /// Seals a full private page whose parent is `parent` (nullopt for the first page). If a page of
  /// the same identity is resident already, references and returns that one, and gives `page` back.
  PageIndex seal(PageIndex page, std::optional<PageIndex> parent, std::span<const TokenId> tokens);
  /// Makes a sealed page private again, so that its rows may be overwritten. False, and nothing
  /// changed, if others reference it or a resident page has it as parent.
  bool unseal(PageIndex page);
  /// The resident page with this identity, referenced, or nullopt.
  std::optional<PageIndex> find(std::optional<PageIndex> parent, std::span<const TokenId> tokens);

  /// Leading tokens of `tokens` that resident sealed pages hold: a multiple of kPageTokens. Does
  /// not count as a use.
  int resident(std::span<const TokenId> tokens) const;

  /// Identities of the full pages of `tokens`, first to last.
  std::vector<Digest> identities(std::span<const TokenId> tokens) const;
  bool is_resident(const Digest& identity) const { return index_.contains(identity); }
  /// Whether `page` is sealed and has this identity.
  bool is(PageIndex page, const Digest& identity) const {
    return at(page).state == State::kSealed && at(page).identity == identity;
  }

  /// Notes whose text a sealed page holds. False if that was known.
  bool add_source(PageIndex page, SourceId source);
  std::span<const SourceId> sources(PageIndex page) const { return at(page).sources; }
  /// A visit of this document begins: unused pages of it are kept `longer` visits longer than others
  /// (PageOrder). kNone makes the others older.
  void visited(SourceId source, int longer);
  /// Evicts the pages of `source` and all that follow them, except those that a sequence uses. Also those
  /// that nobody uses and that have no source: they may be of it, from when it was not to be stored.
  void forget(SourceId source);
  /// Evicts pages that no sequence uses and that are of none of these documents, leaves first, then
  /// gives the memory of free pages back: `pages_max` pages in all. False once none are left.
  bool give_back_some(std::span<const SourceId> but, int pages_max);
  /// Gives a free page's memory back, so that its bytes are gone. Only if the device can.
  std::function<void(PageIndex)> on_give_back;
  /// Sets the free pages apart that were written since the last call: their bytes are still there.
  /// take() prefers others to them.
  void set_stale_apart();
  /// Overwrites one of them, which is free like others then; false if none is left.
  bool overwrite_one();
  /// Overwrites the bytes of a page that was set apart. A device that fails here is lost, and its
  /// memory with it.
  std::function<Result<void>(PageIndex)> on_overwrite;
  /// A sealed page came from the store; take_restored() says so once.
  void set_restored(PageIndex page) { at(page).restored = true; }
  bool take_restored(PageIndex page) { return std::exchange(at(page).restored, false); }
  /// Called before a page is evicted to make room, while it is still sealed.
  std::function<void(PageIndex)> on_evict;

  void reference(PageIndex page);
  void release(PageIndex page);

  /// Identity of a sealed page.
  Digest identity(PageIndex page) const;
  /// The page before a sealed one.
  std::optional<PageIndex> parent(PageIndex page) const;
  int pages_used() const { return page_count() - pages_free(); }
  /// Pages that take() can still hand out: free, or sealed and referenced by nobody.
  int pages_available() const { return pages_free() + unreferenced_; }
  int page_count() const { return static_cast<int>(pages_.size()); }

  /// Checks every rule above; for tests. Empty if all hold, else the first that does not.
  std::string check() const;

 private:
  enum class State : std::uint8_t { kFree, kPrivate, kSealed };
  struct Page {
    State state = State::kFree;
    int references = 0;
    int children = 0;                    ///< resident pages that have it as parent
    PageIndex parent = kNoPage;          ///< of a sealed page; kNoPage for the first of a sequence
    Digest identity = {};                ///< of a sealed page
    PageOrder::Time last_use = {};       ///< when it was last referenced or released
    PageOrder::Time until = {};          ///< its place among the evictable ones, if it is one
    std::vector<SourceId> sources = {};  ///< of a sealed page
    bool restored = false;               ///< came from the store, and was not used since
  };
  static constexpr PageIndex kNoPage = -1;

  Page& at(PageIndex page) { return pages_[static_cast<std::size_t>(page)]; }
  int pages_free() const { return static_cast<int>(free_.size() + stale_.size()); }
  const Page& at(PageIndex page) const { return pages_[static_cast<std::size_t>(page)]; }
  Digest identity_behind(const Digest& parent, std::span<const TokenId> tokens) const;
  Digest identity_behind(std::optional<PageIndex> parent, std::span<const TokenId> tokens) const;
  static bool evictable(const Page& page) {
    return page.state == State::kSealed && page.references == 0 && page.children == 0;
  }
  /// Lists the page as evictable when it is.
  void offer(PageIndex page);
  void evict_first();
  /// Evicts a page that is evictable.
  void evict(PageIndex page);
  /// Removes a sealed page without references from the index and updates its parent.
  void unlink(PageIndex page);
  std::string check_page(PageIndex page, int children) const;

  Digest root_;
  std::optional<PageKey> key_;
  std::vector<Page> pages_;
  std::vector<PageIndex> free_;   ///< last in, first out: memory that was never touched stays so
  std::vector<PageIndex> stale_;  ///< free, too, once they are overwritten
  std::vector<bool> written_;     ///< taken since set_stale_apart(), and not given back
  std::vector<bool> in_memory_;   ///< taken, and not given back
  std::unordered_map<Digest, PageIndex> index_;  ///< identity -> sealed page
  std::set<std::pair<PageOrder::Time, PageIndex>>
      evictable_;         ///< (until, page), the first out first
  int unreferenced_ = 0;  ///< sealed pages without references
  PageOrder order_;
};

}  // namespace efimd::engine
