#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/config/paths.h"
#include "engine/backend/open_backend.h"

namespace efimd::service {

/// One thing that was looked at.
struct Finding {
  enum class Level { kGood, kNote, kWrong };
  Level level = Level::kGood;
  std::string subject;  ///< "model"
  std::string what;     ///< "efim-boot, llama, 7.9 M parameters, F16"
  std::string remedy;   ///< what to do; empty when nothing
};

/// Looks at the machine, the paths, the configuration, the model and the daemon; changes nothing. A
/// model is opened and validated, not run.
std::vector<Finding> examine(const Paths& paths);

/// Of a kind of GPU, where the configuration names `kind`. To have none is no fault, unless it names that one; what only
/// lacks a permission is worth a note.
Finding finding_of(const engine::FoundDevice& device, std::string_view kind);

std::string findings_text(const std::vector<Finding>& findings);
nlohmann::json findings_json(const std::vector<Finding>& findings);
bool anything_wrong(const std::vector<Finding>& findings);

}  // namespace efimd::service
