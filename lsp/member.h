#pragma once

#include "lsp/json_rpc.h"

namespace efimd::lsp {

/// `object[key]`; null if there is none, or `object` is none. Valid as long as `object` is.
inline const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

}  // namespace efimd::lsp
