#pragma once

#include <string>

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
};

lsp::Json to_json(const CacheRequest& request);
/// kBadInput names what is wrong.
Result<CacheRequest> cache_request_from(const lsp::Json& params);

/// The URIs of the store's documents that equal `uri`, or lie in that folder.
std::vector<std::string> documents_below(const store::Store& store, const std::string& uri);

/// Carries it out, on the disk thread or in a process of its own. Returns the answer, as
/// docs/protocol.md has it.
Result<lsp::Json> serve_cache_request(store::Store& store, const CacheRequest& request);

}  // namespace efimd::service
