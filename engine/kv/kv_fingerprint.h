#pragma once

#include "base/digest.h"
#include "base/error.h"

namespace efimd::engine {

class Backend;

/// A digest of the KV that the device makes of a fixed handful of tokens. Stored pages are found
/// only by a device that makes the same (KV-5): a build whose kernels round otherwise, or a driver
/// that does, starts cold instead of mixing its pages with others'.
///
/// Two short steps, of which the second attends over more than one range of pages. Before the first
/// sequence is opened: it writes pages 0 and 1.
/// Thread: engine.  Fails as the Backend does.
Result<Digest> kv_fingerprint(Backend& backend, int layers, int vocabulary);

}  // namespace efimd::engine
