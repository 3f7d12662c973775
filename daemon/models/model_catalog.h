#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/config/config.h"
#include "daemon/models/shared_models.h"

namespace efimd::service {

/// Folders that are searched for models; they need not exist.
struct ModelPlaces {
  std::filesystem::path own;  ///< $XDG_DATA_HOME/efimd/models
  /// Beside the executable, then this build's source tree.
  std::vector<std::filesystem::path> bundled;
  std::vector<SharedFolder> shared = {};  ///< other programs'; searched last
};
ModelPlaces find_model_places();
/// A path from the process's environment, the user's also under VS Code's snap; nullopt if the
/// variable is unset or no absolute path.
std::optional<std::filesystem::path> absolute_variable(const char* name);

/// Sorted by name within each place; of two paths to one file only the first. Limits: kModelsMax
/// entries of a folder of our own; shared_models.h has the limits of the others.
std::vector<ModelFile> list_models(const ModelPlaces& places);

struct ModelChoice {
  std::filesystem::path path;
  /// "EFIMD_MODEL", "efimd model use", "config.toml", "the bundled model, none is configured".
  std::string reason;
};
/// The configured model (a path, ~/..., the name of a listed model, or the short name that
/// catalog.toml has for one), else the bundled
/// efim-boot.gguf. kNotFound says which places were searched.
Result<ModelChoice> choose_model(const Config& config, const ModelPlaces& places);

}  // namespace efimd::service
