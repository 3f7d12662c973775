#pragma once

#include <filesystem>
#include <string>

#include "base/error.h"
#include "daemon/config/config.h"

namespace efimd::service {

/// The model that a command's argument names: by path, by a listed name, by the name of a file in the
/// current folder, else by its repository. The file need not be there, nor be a model. kNotFound if
/// nothing has that name, kBadInput if several have.
Result<std::filesystem::path> find_asked_model(const Config& config, const std::string& asked);

}  // namespace efimd::service
