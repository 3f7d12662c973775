#pragma once

#include "daemon/cli/options.h"
#include "daemon/config/paths.h"

namespace efimd::service {

/// `efimd setup`: finds the editors, shows what it would do for each, and does what the user wants.
/// 1 if a step failed, or if there is nobody to ask.
int run_setup(const Paths& paths, const CommandLine::Setup& options);

}  // namespace efimd::service
