#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace efimd::service {

/// The answer to efim/status (status_json.h) as tables for people. Members that are absent or of
/// another type show as "-": the daemon may be of another version.
std::string status_text(const nlohmann::json& status);

}  // namespace efimd::service
