#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace efimd::service {

/// The outermost object of a JSON file with comments and trailing commas, as editors keep their
/// settings.
struct JsonRoot {
  std::size_t inside = 0;         ///< the place after its brace
  std::vector<std::string> keys;  ///< as written, escapes too
};

/// Reads the whole text, so that what is written into it stands in a file that can be read. Instead
/// of nlohmann's parser, which takes no trailing commas and gives no places.
///
/// kBadInput with the line for anything else. Limits: kJsonDepthMax objects in one another.
Result<JsonRoot> read_json_root(std::string_view text);

inline constexpr int kJsonDepthMax = 100;

}  // namespace efimd::service
