#pragma once

#include <filesystem>

#include "base/error.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

// What `efimd model use` chose: one line, an absolute path, in the file `model` of the state
// folder. It decides over config.toml, which the user wrote earlier, and under EFIMD_MODEL.

Result<void> choose_model_for_good(const Paths& paths, const std::filesystem::path& model);
/// Good also where nothing was chosen.
Result<void> forget_chosen_model(const Paths& paths);
/// Puts the choice, if there is one, into the configuration. A file that is no such line counts as
/// none.
void take_chosen_model(Config& config, const Paths& paths);
/// What the daemon would be configured with: config.toml with the choice in it.
Config config_in_force(const Paths& paths);

}  // namespace efimd::service
