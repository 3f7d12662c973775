#pragma once

#include <cstdint>

namespace efimd::engine {

/// Index into a model's vocabulary.
using TokenId = std::int32_t;
inline constexpr TokenId kNoToken = -1;

/// Index of a page in the device's page memory.
using PageIndex = std::int32_t;

/// Tokens per KV page (P). 32 tokens of a 0.5B model are 384 KiB in f16.
inline constexpr int kPageTokens = 32;

}  // namespace efimd::engine
