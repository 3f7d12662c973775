#include "daemon/models/chosen_model.h"

#include <string>
#include <system_error>

#include "base/small_file.h"
#include "daemon/config/local_socket.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPathBytesMax = 4096;

fs::path file_of(const Paths& paths) { return paths.state_dir / "model"; }

}  // namespace

Result<void> choose_model_for_good(const Paths& paths, const fs::path& model) {
  make_private_folder(paths.state_dir);
  const fs::path file = file_of(paths);
  if (!replace_small_file(file, model.string() + "\n"))
    return fail(Fault::kIo, file.string() + ": cannot be written",
                "check the state folder's permissions, or set model.file in config.toml");
  return {};
}

Result<void> forget_chosen_model(const Paths& paths) {
  std::error_code error;
  fs::remove(file_of(paths), error);
  if (error)
    return fail(Fault::kIo, file_of(paths).string() + ": " + error.message(), "remove it by hand");
  return {};
}

void take_chosen_model(Config& config, const Paths& paths) {
  if (config.model_source == "EFIMD_MODEL") return;
  std::string line = read_small_file(file_of(paths), kPathBytesMax);
  if (line.size() < 2 || line.front() != '/' || line.find('\n') != line.size() - 1) return;
  line.pop_back();
  config.model = line;
  config.model_source = "efimd model use";
}

Config config_in_force(const Paths& paths) {
  Config config = load_config(paths.config_file);
  take_chosen_model(config, paths);
  return config;
}

}  // namespace efimd::service
