#include "base/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace efimd {

std::string Digest::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

namespace {

Digest digest_with(XXH3_state_t* state, std::span<const std::byte> bytes, const Digest& parent) {
  XXH3_128bits_update(state, &parent, sizeof parent);
  XXH3_128bits_update(state, bytes.data(), bytes.size());
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  return {hash.low64, hash.high64};
}

}  // namespace

Digest digest_of(std::span<const std::byte> bytes, Digest parent) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset(state);
  return digest_with(state, bytes, parent);
}

Digest digest_of(std::span<const std::byte> bytes, Digest parent,
                 std::span<const std::byte> secret) {
  XXH3_state_t* state = XXH3_createState();
  XXH3_128bits_reset_withSecret(state, secret.data(), secret.size());
  return digest_with(state, bytes, parent);
}

}  // namespace efimd
