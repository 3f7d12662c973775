#include "daemon/models/chosen_model.h"

#include <fstream>
#include <string>
#include <system_error>

#include "daemon/config/local_socket.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPathBytesMax = 4096;

fs::path file_of(const Paths& paths) { return paths.state_dir / "model"; }

}  // namespace

Result<void> choose_model_for_good(const Paths& paths, const fs::path& model) {
  std::error_code error;
  make_private_folder(paths.state_dir);
  const fs::path file = file_of(paths);
  const fs::path next = file.string() + ".new";
  std::ofstream stream(next, std::ios::binary | std::ios::trunc);
  stream << model.string() << "\n";
  stream.close();
  if (!stream.fail()) fs::rename(next, file, error);
  if (stream.fail() || error)
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
  std::error_code error;
  if (!fs::is_regular_file(file_of(paths), error)) return;  // a pipe would wait for its writer
  std::ifstream stream(file_of(paths), std::ios::binary);
  std::string line(kPathBytesMax, '\0');
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(stream.gcount()));
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
