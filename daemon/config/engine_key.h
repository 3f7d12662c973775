#pragma once

#include <string>

#include "base/error.h"

namespace efimd::service {

/// The server's key: the first line of `file`, else `variable`, else none. kBadInput for a file that
/// others can read, because then the key is no secret, and for what cannot stand in a header.
Result<std::string> find_engine_key(const std::string& file, const char* variable);

}  // namespace efimd::service
