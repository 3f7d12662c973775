#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/digest.h"
#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine {

/// Bookkeeping of the device's KV pages; the bytes are the Backend's.
///
///   KV-1  A full page's identity is the digest of (root = model and KV type, parent page's identity, its token ids).
///   KV-2  Full pages are immutable and shared by reference count; a partial page belongs to one sequence.
///   KV-3  A page is evicted only when no sequence uses it and no resident page has it as parent (leaves first),
///         oldest use first.
///
/// State of a page:  free -> private (one sequence writes it) -> sealed (full, indexed, shared) -> free (evicted).
///
/// Thread: engine.  Never fails its owner: when every page is referenced, take() says kWindowFull.
class KvPool {
 public:
  KvPool(int page_count, Digest root);

  /// A page to write into, evicting one if none is free.
  Result<PageIndex> take();
  /// Gives a private page back.
  void give_back(PageIndex page);

  /// Seals a full private page whose parent is `parent` (nullopt for the first page). When a page of the same
  /// identity is resident already, that one is referenced and returned and `page` is given back.
  PageIndex seal(PageIndex page, std::optional<PageIndex> parent, std::span<const TokenId> tokens);
  /// The resident page with this identity, referenced, or nullopt.
  std::optional<PageIndex> find(std::optional<PageIndex> parent, std::span<const TokenId> tokens);

  void reference(PageIndex page);
  void release(PageIndex page);

  /// Identity of a sealed page.
  Digest identity(PageIndex page) const;
  int pages_used() const;  ///< private and sealed
  int page_count() const;

  /// Checks every invariant above; for tests. Empty when all hold, else the first that does not.
  std::string check() const;
  // (private part: see kv_pool.cpp's author)
};

}  // namespace efimd::engine
