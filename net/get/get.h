#pragma once

#include <filesystem>

#include "base/error.h"
#include "net/get/options.h"
#include "net/get/report.h"

namespace efimd::get {

struct Got {
  std::filesystem::path path;  ///< of the model's (first) file; empty: nothing was to be loaded
  bool was_here = false;
};

/// From a name to a checked file in the hub's cache, or, for an address of no hub, in efimd's own
/// folder.
///
///   1  what was asked for (asked.h)
///   2  what the hub has (hub.h); without a connection, or with HF_HUB_OFFLINE, what the cache has
///   3  size, licence and speed are shown (offer.h); on a terminal the user is asked
///   4  each file is loaded, hashed and read by efimd's own reader (fetch.h)
///   5  it gets its name in the snapshot, and the revision its commit (cached.h)
Result<Got> get(const Options& options, Report& report);

}  // namespace efimd::get
