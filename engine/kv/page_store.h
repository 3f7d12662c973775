#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "base/digest.h"

namespace efimd::engine {

/// A document as the engine knows it: a number that the store's owner gave it. kNone is text that
/// must not be stored.
enum class SourceId : std::uint32_t { kNone = 0 };

enum class WriteBehind : std::uint8_t {
  kWrote,
  kNothing,  ///< every page that may be stored was handed over, or the store never takes any
  kLater,    ///< the store takes none now
};

/// A full page on its way to the store.
struct PageToStore {
  Digest page;                    ///< KV-1
  std::optional<Digest> parent;   ///< of the page before it
  std::vector<SourceId> sources;  ///< at least one, none of them kNone
  std::vector<std::byte> bytes;   ///< Backend::read_page's
};

/// Whether a page is about to be evicted from the device, or stays there for now.
enum class Leaving : bool { kNo, kYes };

/// What is overwritten in one go: 16 MiB take 1 to 3 ms, so a keystroke does not wait for it.
inline constexpr std::size_t kOverwrittenBytes = std::size_t{16} << 20;

/// The pages that a store holds in the machine's memory.
struct HostUsage {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;
};

/// The home of pages that are not on the device. The engine's own interface; the daemon decides
/// what implements it.
///
///   KV-4  Device, host and disk each have a budget in bytes, which the status shows. Over budget a
///         page moves down a tier or is dropped; no request fails for it.
///
/// Thread: engine. Only load() waits, and no longer than its limit. Never fails: a page that is not
/// available is evaluated.
class PageStore {
 public:
  virtual ~PageStore() = default;

  /// False if it holds nothing and never will.
  virtual bool is_usable() const = 0;
  virtual bool holds(const Digest& page) const = 0;
  /// Announces that these pages will be loaded, in this order: reading them may begin.
  virtual void want(std::span<const Digest> pages) = 0;
  virtual std::optional<std::vector<std::byte>> load(const Digest& page,
                                                     std::chrono::microseconds patience,
                                                     const std::stop_token& stop) = 0;
  /// The time to load this page, as measured so far; zero if nothing was loaded yet.
  virtual std::chrono::microseconds load_time(const Digest& page) const = 0;

  /// Whether write() would take a page now.
  virtual bool takes_page(Leaving leaving) const = 0;
  /// False if the store did not take it.
  virtual bool write(PageToStore page) = 0;
  /// Says that a page that the store holds belongs to these documents, too.
  virtual void add_sources(const Digest& page, std::span<const SourceId> sources) = 0;
  /// A visit of the document begins: its pages are kept `longer` visits longer than others.
  virtual void visited(SourceId, int /*longer*/) {}
  /// Drops the document's pages from memory. The disk is purged elsewhere.
  virtual void forget(SourceId) {}
  /// Overwrites kOverwrittenBytes of what was forgotten; false once nothing is left.
  virtual bool overwrite_some() { return false; }
  virtual HostUsage host_usage() const { return {}; }
};

}  // namespace efimd::engine
