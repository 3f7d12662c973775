#pragma once

#include "base/digest.h"
#include "base/error.h"

namespace efimd::engine {

class Backend;

/// A digest of the KV that the device computes for a few fixed tokens. Only a device that computes
/// the same finds stored pages (KV-5). If a build's kernels or a driver round differently, it
/// starts cold instead of mixing its pages with others'.
///
/// Takes two short steps; the second attends over more than one range of pages. To be called before
/// the first sequence is opened, because it writes pages 0 and 1.
/// Thread: engine.  Fails as the Backend does.
Result<Digest> kv_fingerprint(Backend& backend, int layers, int vocabulary);

}  // namespace efimd::engine
