#include "daemon/config/paths.h"

#include <pwd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>

namespace efimd::service {

namespace fs = std::filesystem;

const std::size_t kSocketPathMax = sizeof(sockaddr_un{}.sun_path);

namespace {

/// $name as an absolute path; relative values are ignored.
std::optional<fs::path> xdg_folder(const Surroundings& from, const char* name) {
  const auto value = from.variable(name);
  if (!value || !fs::path(*value).is_absolute()) return std::nullopt;
  return fs::path(*value) / "efimd";
}

/// $name, made absolute.
std::optional<fs::path> own_path(const Surroundings& from, const char* name) {
  const auto value = from.variable(name);
  if (!value) return std::nullopt;
  std::error_code error;
  fs::path path = fs::absolute(*value, error);
  return error ? fs::path(*value) : path.lexically_normal();
}

bool is_folder_of(const fs::path& path, uid_t user) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == user;
}

fs::path runtime_dir(const Surroundings& from, std::vector<std::string>& notes) {
  if (auto own = own_path(from, "EFIMD_RUNTIME_DIR")) return *own;
  if (auto xdg = xdg_folder(from, "XDG_RUNTIME_DIR")) return *xdg;
  const std::string user = std::to_string(from.user);
  const fs::path run_user = from.run_user_root / user;
  const fs::path chosen = is_folder_of(run_user, from.user)
                              ? run_user / "efimd"
                              : from.temp_directory / ("efimd-" + user);
  notes.push_back(
      "$XDG_RUNTIME_DIR " +
      std::string(from.variable("XDG_RUNTIME_DIR") ? "is no absolute path" : "is not set") +
      ": the socket lives in " + chosen.string());
  return chosen;
}

std::optional<std::string> home_in_passwd(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::string buffer(16384, '\0');
  if (::getpwuid_r(user, &entry, buffer.data(), buffer.size(), &found) != 0 || !found)
    return std::nullopt;
  return std::string(entry.pw_dir);
}

}  // namespace

Surroundings Surroundings::of_this_process() {
  Surroundings here;
  here.variable = [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (!value || !*value) return std::nullopt;
    return std::string(value);
  };
  here.user = ::geteuid();
  here.run_user_root = "/run/user";
  std::error_code error;
  here.temp_directory = fs::temp_directory_path(error);
  if (error) here.temp_directory.clear();
  here.home = home_in_passwd(here.user).value_or("");
  return here;
}

Result<Paths> find_paths(const Surroundings& from) {
  Paths paths;
  paths.runtime_dir = runtime_dir(from, paths.notes);
  if (!paths.runtime_dir.is_absolute())
    return fail(Fault::kBadInput, "no folder for the daemon's socket: no temporary directory",
                "set EFIMD_RUNTIME_DIR or XDG_RUNTIME_DIR");
  fs::path home = from.variable("HOME").value_or("");
  if (!home.is_absolute()) home = from.home;
  bool homeless = false;
  const auto place = [&](const char* own, const char* xdg, const char* below_home,
                         const char* file) {
    if (auto path = own_path(from, own)) return *path;
    homeless |= !xdg_folder(from, xdg) && home.empty();
    const fs::path folder = xdg_folder(from, xdg).value_or(home / below_home / "efimd");
    return *file ? folder / file : folder;
  };
  paths.config_file = place("EFIMD_CONFIG", "XDG_CONFIG_HOME", ".config", "config.toml");
  paths.cache_dir = place("EFIMD_CACHE_DIR", "XDG_CACHE_HOME", ".cache", "");
  paths.state_dir = place("EFIMD_STATE_DIR", "XDG_STATE_HOME", ".local/state", "");
  if (homeless)
    return fail(Fault::kBadInput, "this user has no home directory",
                "set $HOME, or EFIMD_CONFIG, EFIMD_CACHE_DIR and EFIMD_STATE_DIR");
  if (paths.socket().native().size() + 1 > kSocketPathMax)
    return fail(Fault::kBadInput,
                paths.socket().string() + ": longer than the " +
                    std::to_string(kSocketPathMax - 1) + " bytes of a socket's path",
                "set EFIMD_RUNTIME_DIR to a folder with a shorter name");
  return paths;
}

}  // namespace efimd::service
