#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace efimd {

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest digest_of(std::span<const std::byte> bytes, Digest parent) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, &parent, sizeof parent);
  XXH3_128bits_update(state, bytes.data(), bytes.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return {hash.low64, hash.high64};
}

}  // namespace efimd
