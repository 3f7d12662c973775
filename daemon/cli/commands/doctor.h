#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/paths.h"
#include "engine/backend/open_backend.h"

namespace efimd::service {

/// The result of one check.
struct Finding {
  enum class Level { kGood, kNote, kWrong };
  Level level = Level::kGood;
  std::string subject;  ///< "model"
  std::string what;     ///< "efim-boot, llama, 7.9 M parameters, F16"
  std::string remedy;   ///< what to do; empty if nothing
};

/// Checks the machine, the paths, the configuration, the model and the daemon; changes nothing.
/// Opens and validates the model, but does not run it.
std::vector<Finding> examine(const Paths& paths);

/// The folders of the socket, the cache and the log: whether they are there, private and
/// writable, and whether there is room.
void examine_paths(const Paths& paths, std::vector<Finding>& findings);

/// Whether the file is completed and its KV may be stored, and why not. Reads the file.
std::vector<Finding> examine_file(const Config& config, const std::filesystem::path& file);

/// The finding on a kind of GPU, if the configuration names `kind`. A machine without such a GPU is
/// not wrong, unless the configuration names it. A missing permission is worth a note.
Finding finding_of(const engine::FoundDevice& device, std::string_view kind);

std::string findings_text(const std::vector<Finding>& findings);
nlohmann::json findings_json(const std::vector<Finding>& findings);
bool anything_wrong(const std::vector<Finding>& findings);

}  // namespace efimd::service
