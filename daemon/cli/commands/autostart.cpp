#include "daemon/cli/autostart.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/config/this_system.h"

extern char** environ;

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

fs::path folder_in(const char* variable, const char* below_home) {
  if (const char* set = std::getenv(variable); set != nullptr && *set == '/') return set;
  const char* home = std::getenv("HOME");
  return fs::path(home == nullptr ? "" : home) / below_home;
}

/// Runs a program of the service manager and waits; its exit status, or why there is none.
Result<int> run_program(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int spawned =
      ::posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (spawned != 0)
    return fail(Fault::kNotFound, words.front() + ": " + std::strerror(spawned),
                "is it on the PATH?");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail(Fault::kIo, words.front() + ": " + std::strerror(errno));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

Result<void> must_run(const std::vector<std::string>& words) {
  const auto status = run_program(words);
  if (!status) return tl::unexpected(status.error());
  if (*status == 0) return {};
  return fail(Fault::kIo, fmt::format("{} ended with {}", fmt::join(words, " "), *status),
              "see its message above");
}

Result<void> write_file(const fs::path& path, const std::string& text) {
  if (!path.is_absolute())
    return fail(Fault::kBadInput, "this user has no home directory", "set $HOME");
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::trunc);
  file << text;
  if (file.flush()) return {};
  return fail(Fault::kIo, path.string() + ": cannot be written", "check the folder's permissions");
}

#if defined(__APPLE__)

fs::path agent_file() {
  return folder_in("EFIMD_LAUNCH_AGENTS", "Library/LaunchAgents") / "efimd.plist";
}

Result<void> enable(const Paths&, const fs::path& program) {
  if (auto written = write_file(agent_file(), launch_agent(program)); !written) return written;
  return must_run({"launchctl", "load", "-w", agent_file()});
}

Result<void> disable() {
  if (!fs::exists(agent_file())) return {};
  auto unloaded = must_run({"launchctl", "unload", "-w", agent_file()});
  if (unloaded) fs::remove(agent_file());
  return unloaded;
}

int show_status() {
  fmt::print("{}: {}\n", agent_file().string(),
             fs::exists(agent_file()) ? "is there" : "not there");
  return 0;
}

bool has_manager() { return true; }
bool has_files() { return fs::exists(agent_file()); }

#else

constexpr std::array kUnits = {kSocketUnit, kServiceUnit, kPlainUnit, kHttpUnit};

fs::path unit_folder() { return folder_in("XDG_CONFIG_HOME", ".config") / "systemd/user"; }

/// A user manager listens in this folder, which systemd's tools also make without one.
bool has_manager() {
  std::error_code error;
  const char* set = std::getenv("XDG_RUNTIME_DIR");
  if (set == nullptr) return false;
  const fs::path runtime(set);
  return fs::exists(runtime / "systemd/private", error) ||
         (fs::is_directory(runtime / "systemd", error) && fs::exists(runtime / "bus", error));
}

bool has_files() {
  std::error_code error;
  return unit_folder().is_absolute() && fs::exists(unit_folder() / kSocketUnit, error);
}

/// The socket as the unit names it: by %t where it lies there, since the manager's own value
/// counts.
std::string unit_socket(const Paths& paths) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool usual =
      runtime != nullptr && paths.socket() == fs::path(runtime) / "efimd/daemon.sock";
  return usual ? kUserSocket : socket_path(paths.socket());
}

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

/// The folders that this command uses, as far as variables say so: the manager may know none of them, and
/// its daemon would have another socket, configuration and choice of a model.
UnitEnvironment unit_environment(const Paths& paths) {
  UnitEnvironment environment;
  const auto add = [&](const char* own, const char* xdg, const fs::path& path) {
    if (is_set(own) || is_set(xdg)) environment.emplace_back(own, path);
  };
  add("EFIMD_RUNTIME_DIR", "EFIMD_RUNTIME_DIR", paths.runtime_dir);
  add("EFIMD_CONFIG", "XDG_CONFIG_HOME", paths.config_file);
  add("EFIMD_CACHE_DIR", "XDG_CACHE_HOME", paths.cache_dir);
  add("EFIMD_STATE_DIR", "XDG_STATE_HOME", paths.state_dir);
  return environment;
}

Result<void> write_units(const Paths& paths, const fs::path& program) {
  const fs::path folder = unit_folder();
  const UnitEnvironment environment = unit_environment(paths);
  for (const auto& [unit, rights] :
       {std::pair(kServiceUnit, Rights::kOwnUsers), std::pair(kPlainUnit, Rights::kPlain)})
    if (auto done = write_file(folder / unit, service_unit(program, rights, environment)); !done)
      return done;
  if (auto done = write_file(folder / kHttpUnit, http_unit(program, environment)); !done)
    return done;
  return write_file(folder / kSocketUnit, socket_unit(unit_socket(paths)));
}

/// With the link by which systemctl enabled the socket.
void remove_units() {
  const fs::path folder = unit_folder();
  std::error_code error;
  fs::remove(folder / "sockets.target.wants" / kSocketUnit, error);
  for (const char* unit : kUnits) fs::remove(folder / unit, error);
}

Result<void> enable_units(const Paths& paths, const fs::path& program) {
  if (auto done = write_units(paths, program); !done) return done;
  // A daemon that an editor started would go on with a socket of its own: two models in memory.
  if (run_stop(paths) != 0) return fail(Fault::kIo, "the daemon that runs could not be stopped");
  if (auto done = must_run({"systemctl", "--user", "daemon-reload"}); !done) return done;
  return must_run({"systemctl", "--user", "enable", "--now", kSocketUnit});
}

Result<void> enable(const Paths& paths, const fs::path& program) {
  const bool had_files = has_files();
  auto done = enable_units(paths, program);
  if (!done && !had_files) remove_units();  // they would count as enabled
  return done;
}

Result<void> disable() {
  if (!has_files()) return {};
  // One that is of an earlier version has fewer units.
  std::vector<std::string> words = {"systemctl", "--user", "disable", "--now"};
  for (const char* unit : kUnits)
    if (fs::exists(unit_folder() / unit)) words.emplace_back(unit);
  const auto done = has_manager() ? must_run(words) : Result<void>();
  remove_units();  // whatever it said: else nothing would ever remove them
  if (!done || !has_manager()) return done;
  return must_run({"systemctl", "--user", "daemon-reload"});
}

int show_status() {
  const fs::path unit = unit_folder() / kSocketUnit;
  fmt::print("{}: {}\n", unit.string(), fs::exists(unit) ? "is there" : "not there");
  std::fflush(stdout);
  if (!has_manager()) return 0;
  if (const auto shown =
          run_program({"systemctl", "--user", "--no-pager", "--lines=0", "list-units", "--all",
                       "--no-legend", kSocketUnit, kServiceUnit, kPlainUnit, kHttpUnit});
      !shown)
    return failed(shown.error());
  return 0;
}

#endif

int report(const Result<void>& done, const char* good) {
  if (!done) return failed(done.error());
  fmt::print("{}\n", good);
  return 0;
}

}  // namespace

AutostartState autostart_state() { return {has_manager(), has_files()}; }

int run_autostart(const Paths& paths, CommandLine::Autostart what) {
  const bool removes = what == CommandLine::Autostart::kDisable && has_files();
  if (what != CommandLine::Autostart::kStatus && !has_manager() && !removes) {
    fmt::print(
        "no service manager of yours runs here, and none is needed: the first editor starts the "
        "daemon\n");
    return 0;
  }
  switch (what) {
    case CommandLine::Autostart::kEnable: {
      const auto program = own_executable();
      if (!program) return failed(program.error());
      return report(enable(paths, *program), "enabled: the first editor wakes the daemon");
    }
    case CommandLine::Autostart::kDisable:
      return report(disable(), "disabled: the first editor starts the daemon itself");
    case CommandLine::Autostart::kStatus:
      if (!has_manager())
        fmt::print("no service manager of yours runs here: the first editor starts the daemon\n");
      return show_status();
  }
  return 2;
}

}  // namespace efimd::service
