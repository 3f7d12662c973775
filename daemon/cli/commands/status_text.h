#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace efimd::service {

/// The answer to efim/status (status_json.h) as tables for people. Members that are absent or of
/// another type show as "-", because the daemon may be of another version.
std::string status_text(const nlohmann::json& status);

/// How the last requests were planned (`efimd status --why`).
std::string plans_text(const nlohmann::json& status);

/// Cells of a terminal.
struct Screen {
  std::size_t rows = 24;
  std::size_t columns = 80;
};
/// The same for a live view: bars for memory, no more lines and columns than `screen` has. The last
/// line says how much does not fit.
std::vector<std::string> status_screen(const nlohmann::json& status, Screen screen);
std::vector<std::string> plans_screen(const nlohmann::json& status, Screen screen);

}  // namespace efimd::service
