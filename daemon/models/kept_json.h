#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/small_file.h"

namespace efimd::service {

/// The object in a small file of our own. It is empty if there is no file, or the file is damaged or
/// longer than `bytes_max`: then what it kept is found anew.
inline nlohmann::json read_kept_json(const std::filesystem::path& file, std::size_t bytes_max) {
  nlohmann::json json = nlohmann::json::parse(read_small_file(file, bytes_max), nullptr,
                                              /*allow_exceptions=*/false);
  return json.is_object() ? json : nlohmann::json::object();
}

}  // namespace efimd::service
