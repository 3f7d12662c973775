#pragma once

#include <string_view>

namespace efimd::engine {

/// The form in which a device keeps K and V.
enum class KvType {
  kF16,
  kQ8,  ///< 8 bits and a scale for each 32 elements: 53 % of f16's bytes at heads of 64
};

constexpr std::string_view kv_type_name(KvType type) { return type == KvType::kQ8 ? "q8" : "f16"; }

}  // namespace efimd::engine
