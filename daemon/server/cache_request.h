#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache_store/store.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

/// A request of `efimd cache` to the store; the params of efim/cache.
struct CacheRequest {
  enum class Action { kList, kPurge, kPin, kUnpin, kVerify, kStats };
  Action action = Action::kList;
  std::string uri;    ///< of a file, or of a folder for all below it; kPurge, kPin, kUnpin
  std::string model;  ///< kPurge: a model's name, or the beginning of its digest
  bool all = false;   ///< kPurge
  /// The daemon's own: the URIs that name `uri`'s file, found on a file thread. Nothing of them need
  /// be on disk yet.
  std::optional<std::vector<std::string>> spellings = {};
};

lsp::Json to_json(const CacheRequest& request);
/// kBadInput names what is wrong.
Result<CacheRequest> cache_request_from(const lsp::Json& params);

/// kNotFound, for a purge or a pin of a file that has nothing in the store.
Error nothing_kept(const std::string& uri);

/// The answer to a purge by a daemon that keeps nothing on disk.
lsp::Json memory_purged(std::size_t documents, std::size_t tokens);

/// Does it, on the disk thread or in a process of its own. The answer, as docs/protocol.md has it.
/// `uri` names a file in any spelling (FileIdentity); kNotFound if nothing is kept of it.
Result<lsp::Json> serve_cache_request(store::Store& store, const CacheRequest& request);

}  // namespace efimd::service
