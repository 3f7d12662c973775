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

/// A document as the engine knows it: whose text a page holds, in the words of who owns the store.
/// kNone is text that must not be stored.
enum class SourceId : std::uint32_t { kNone = 0 };

enum class WriteBehind : std::uint8_t {
  kWrote,
  kNothing,  ///< every page that may be stored was handed over, or none ever will be
  kLater,    ///< the store takes none now
};

/// A full page on its way to the store.
struct PageToStore {
  Digest page;                    ///< KV-1
  std::optional<Digest> parent;   ///< of the page in front of it
  std::vector<SourceId> sources;  ///< at least one, none of them kNone
  std::vector<std::byte> bytes;   ///< Backend::read_page's
};

/// Whether a page is about to be evicted from the device, or stays there for now.
enum class Leaving : bool { kNo, kYes };

/// What a store holds in the machine's memory.
struct HostUsage {
  std::size_t budget_bytes = 0;
  std::size_t used_bytes = 0;
};

/// Where pages are when they are not on the device. The engine's own face of it: what stands behind
/// it is the daemon's matter.
///
///   KV-4  Device, host and disk each have a budget in bytes, which the status shows. Over budget a
///         page moves down a tier or is dropped; no request fails for it.
///
/// Thread: engine.  Nothing here waits but load(), and that no longer than it is told. Never fails:
/// a page that cannot be had is evaluated.
class PageStore {
 public:
  virtual ~PageStore() = default;

  /// False: it holds nothing and never will.
  virtual bool is_usable() const = 0;
  virtual bool holds(const Digest& page) const = 0;
  /// These pages will be loaded, in this order: reading them may begin.
  virtual void want(std::span<const Digest> pages) = 0;
  virtual std::optional<std::vector<std::byte>> load(const Digest& page,
                                                     std::chrono::microseconds patience,
                                                     const std::stop_token& stop) = 0;
  /// What loading this page takes, as measured so far; zero when nothing was loaded yet.
  virtual std::chrono::microseconds load_time(const Digest& page) const = 0;

  /// Whether write() would take a page now.
  virtual bool takes_page(Leaving leaving) const = 0;
  /// False when it was not taken.
  virtual bool write(PageToStore page) = 0;
  /// A page that the store holds belongs to these documents, too.
  virtual void add_sources(const Digest& page, std::span<const SourceId> sources) = 0;
  /// Drops from memory what belongs to the document; who purges it from the disk is another.
  virtual void forget(SourceId) {}
  virtual HostUsage host_usage() const { return {}; }
};

}  // namespace efimd::engine
