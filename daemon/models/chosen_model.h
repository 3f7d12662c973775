#pragma once

#include <filesystem>

#include "base/error.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

// The choice of `efimd model use`: one line, an absolute path, in the file `model` of the state
// folder. It overrides config.toml, which the user wrote earlier; EFIMD_MODEL overrides it.

Result<void> choose_model_for_good(const Paths& paths, const std::filesystem::path& model);
/// Succeeds also if nothing was chosen.
Result<void> forget_chosen_model(const Paths& paths);
/// Puts the choice, if there is one, into the configuration. A file with anything else counts as no
/// choice.
void take_chosen_model(Config& config, const Paths& paths);
/// The configuration that a daemon would have: config.toml with the choice in it.
Config config_in_force(const Paths& paths);

}  // namespace efimd::service
