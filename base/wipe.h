#pragma once

#include <cstddef>
#include <cstring>
#include <span>

namespace efimd {

/// Overwrites what is about to be freed: KV of the user's text must not stay behind in free memory.
inline void wipe(std::span<std::byte> bytes) {
  if (!bytes.empty()) ::explicit_bzero(bytes.data(), bytes.size());
}

}  // namespace efimd
