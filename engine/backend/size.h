#pragma once

#include <cstddef>
#include <cstdint>

namespace efimd::engine {

/// An extent, which is never negative, as the standard library counts.
constexpr std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }
/// And as devices do.
constexpr std::uint32_t number(std::int64_t extent) { return static_cast<std::uint32_t>(extent); }

}  // namespace efimd::engine
