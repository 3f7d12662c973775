#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/digest.h"
#include "cache_store/arena.h"

namespace efimd::store {

/// Row of a document in the database; never 0.
using SourceId = std::int64_t;

/// The place of a page's bytes, and their hash.
struct PagePlace {
  std::shared_ptr<Arena> arena;
  int arena_id = 0;
  std::uint32_t slot = 0;
  std::uint64_t checksum = 0;
  /// Of the row's own fields, mixed into the checksum: a damaged row is a damaged page.
  std::uint64_t seed = 0;
};

/// A page of the store. Never without a source, because a page that nobody owns could not be
/// purged.
struct StoredPage {
  PagePlace place;
  std::optional<Digest> parent;
  std::vector<SourceId> sources;
  std::uint64_t last_use = 0;  ///< counts uses; no clock that could jump
};

/// The pages of the store by digest, and the order in which they are evicted. Leaves go first;
/// among them, documents that no editor has open; among those, the longest unused, where a document
/// may be kept longer than others. Pinned pages are never evicted.
///
/// Thread: holds(), find() and size() from any; the rest from one, the disk thread. A lock and not a
/// message, because a keystroke asks whether a page is there and must not wait for a write. Pages come
/// and go under the lock. Their order does not need it, and a document may have many thousands.
class Catalog {
 public:
  bool holds(const Digest& page) const;
  std::optional<PagePlace> find(const Digest& page) const;
  std::size_t size() const;

  void add(const Digest& page, StoredPage stored);
  /// False if it is not there.
  bool remove(const Digest& page);
  void clear();

  /// False if the page is not there, or had the source before.
  bool add_source(const Digest& page, SourceId source);
  /// Notes that the document, and so all of its pages, was used at `time`.
  void use(SourceId source, std::uint64_t time);
  /// Keeps the document's pages as if each had been used `uses` later.
  void keep_longer(SourceId source, std::uint64_t uses);
  void set_open(SourceId source, bool open);
  void set_pinned(SourceId source, bool pinned);
  bool is_open(SourceId source) const;

  /// The page to evict next; nullopt if none may be.
  std::optional<Digest> victim() const;
  /// The pages of a document and all pages that follow them.
  std::vector<Digest> pages_behind(SourceId source) const;
  /// Whose text these pages hold, each once.
  std::vector<SourceId> sources_of(std::span<const Digest> pages) const;
  /// Pages of each document, by arena; and of all arenas, which costs less.
  std::map<std::pair<SourceId, int>, std::size_t> page_counts() const;
  std::unordered_map<SourceId, std::size_t> source_counts() const;

  /// A copy of everything but the bytes, for lists and checks.
  struct Row {
    Digest page;
    StoredPage stored;
  };
  std::vector<Row> rows() const;

 private:
  struct Entry {
    StoredPage stored;
    std::unordered_set<Digest> children;  ///< in the store
  };
  using Order = std::tuple<bool, std::uint64_t, Digest>;  ///< open, until, page
  std::optional<Order> order_of(const Digest& page, const Entry& entry) const;
  /// Takes the entry out of the order, lets `change` change it, puts it back.
  template <class Change>
  void reorder(const Digest& page, Entry& entry, Change change);
  template <class Change>
  void reorder_all(SourceId source, Change change);
  /// Changes what the order depends on: the document's pages out before, and in again.
  template <class Change>
  void change_order(SourceId source, Change change);
  void set_member(std::unordered_set<SourceId>& set, SourceId source, bool member);

  /// Held where entries_ gets or loses one, and where any thread looks.
  mutable std::mutex mutex_;
  std::unordered_map<Digest, Entry> entries_;
  std::unordered_map<Digest, std::unordered_set<Digest>> orphans_;  ///< by their missing parent
  std::unordered_map<SourceId, std::unordered_set<Digest>> by_source_;
  std::unordered_set<SourceId> open_;
  std::unordered_set<SourceId> pinned_;
  std::unordered_map<SourceId, std::uint64_t> longer_;  ///< uses; never 0
  std::set<Order> order_;
};

}  // namespace efimd::store
