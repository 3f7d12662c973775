#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace efimd {

/// A 128-bit content digest (XXH3). Not cryptographic: it names content that this user made.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const Digest&) const = default;
  /// 32 hexadecimal digits, high half first.
  std::string hex() const;
};

/// Digest of `bytes` and their `parent`, so that equal bytes with different parents differ.
Digest digest_of(std::span<const std::byte> bytes, Digest parent = {});
/// The same under a secret of 136 bytes or more, without which nobody can make two equal ones.
Digest digest_of(std::span<const std::byte> bytes, Digest parent,
                 std::span<const std::byte> secret);

}  // namespace efimd

template <>
struct std::hash<efimd::Digest> {
  std::size_t operator()(const efimd::Digest& digest) const noexcept {
    return static_cast<std::size_t>(digest.low);
  }
};
