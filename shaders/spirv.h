#pragma once

#include <cstdint>
#include <span>

namespace efimd::shaders {

/// A device's abilities beyond plain compute; each level includes those before it.
enum class Level : std::uint8_t {
  kPlain,
  kSubgroups,   ///< sums and maxima over a subgroup in one instruction
  kIntegerDot,  ///< four products of signed bytes in one instruction
};
inline constexpr int kLevels = 3;

/// The SPIR-V of a shader, by its file's name without ".comp"; empty for a name that there is not.
std::span<const std::uint32_t> spirv(const char* name, Level level);

}  // namespace efimd::shaders
