#pragma once

#include <filesystem>
#include <functional>
#include <stop_token>

#include "base/digest.h"
#include "base/error.h"
#include "engine/kv/kv_pool.h"
#include "engine/model/gguf.h"

namespace efimd::service {

/// How models are told apart.
struct ModelDigests {
  engine::PageKey key = {};         ///< so that nobody can make two files with one digest
  std::filesystem::path file = {};  ///< keeps them; empty: none is kept
};

/// Reads the mapped weights once, so that the first keystroke does not wait for the disk. Returns a
/// digest of all their bytes: models that differ in one weight never share KV.
///
/// `digests.file` keeps it by the file's place, size and times, so that each file is digested once.
/// Weights that would crowd the machine's memory are left to be read as they are used; then the
/// digest is of the file's place, size and times.
///
/// Limits: kDigestsMax files; a damaged file of digests counts as none. kStopped within 16 MiB of a
/// stop.
Result<Digest> read_ahead(const engine::GgufFile& file, const ModelDigests& digests,
                          const std::function<void(double)>& progress, const std::stop_token& stop);
inline constexpr std::size_t kDigestsMax = 100;

}  // namespace efimd::service
