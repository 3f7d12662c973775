#pragma once

#include <string>

#include "base/error.h"
#include "daemon/config/config.h"
#include "daemon/models/engine_host.h"

namespace efimd::bench {

/// The model, device and memory for KV that the daemon would take by this configuration; nothing is
/// stored. kNotFound where there is no such model.
Result<service::EngineSetup> configured_engine(const service::Config& config);

/// "efim-boot 8M on cpu (AMD EPYC)"
std::string model_on_device(const service::OpenedModel& model, const std::string& kind,
                            const std::string& name);

}  // namespace efimd::bench
