#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/service/config.h"

namespace efimd::service {

/// Folders that are looked through for *.gguf, in this order; they need not exist.
struct ModelPlaces {
  std::filesystem::path own;  ///< $XDG_DATA_HOME/efimd/models
  std::vector<std::filesystem::path>
      bundled;  ///< beside the executable, then this build's source tree
};
ModelPlaces find_model_places();

/// A file with GGUF's first four bytes; nothing else of it was checked.
struct ModelFile {
  std::filesystem::path path;
  std::uintmax_t bytes = 0;
  bool bundled = false;
};
/// By name within each place; of two paths to one file the first. Limits: kModelsMax entries of a
/// folder are looked at.
std::vector<ModelFile> list_models(const ModelPlaces& places);

struct ModelChoice {
  std::filesystem::path path;
  std::string reason;  ///< "EFIMD_MODEL", "config.toml", "the bundled model, none is configured"
};
/// The configured model (a path, ~/..., or the bare name of a listed file), else the bundled
/// efim-boot.gguf. kNotFound says where was looked.
Result<ModelChoice> choose_model(const Config& config, const ModelPlaces& places);

}  // namespace efimd::service
