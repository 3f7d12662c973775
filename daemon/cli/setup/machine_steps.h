#pragma once

#include <optional>
#include <string>

#include "daemon/cli/setup/step.h"
#include "daemon/config/config.h"
#include "daemon/config/paths.h"

namespace efimd::service {

/// That the user's own configuration names a model, if it does: then there is nothing to choose.
std::optional<Step> configured_model_step(const Config& config);

/// The devices of this machine with their measured speed, for people, and the model that suits it.
/// Takes some seconds.
struct MachineLook {
  std::string text;
  Step model;
};
MachineLook look_at_machine(const Config& config, const SetupPlaces& places);

/// Whether the user's service manager starts the daemon.
Step autostart_step(const Paths& paths, Direction direction);

}  // namespace efimd::service
