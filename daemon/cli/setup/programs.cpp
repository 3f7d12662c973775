#include "daemon/cli/setup/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "daemon/config/local_socket.h"

extern char** environ;

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

Result<pid_t> start(const std::vector<std::string>& words, posix_spawn_file_actions_t* actions) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  // A process group of its own could not read the terminal, so only a quiet one gets it.
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  if (actions != nullptr) ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int spawned =
      ::posix_spawnp(&child, arguments[0], actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (spawned != 0)
    return fail(Fault::kNotFound, words.front() + ": " + std::strerror(spawned), "");
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 128;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Until the end of the pipe; false past the deadline. What is over the limit is read and dropped.
bool read_all(int fd, std::string& output) {
  const auto deadline = Clock::now() + kProgramMax;
  std::array<char, 4096> bytes{};
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wanted{fd, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : ::poll(&wanted, 1, static_cast<int>(left.count()));
    if (ready == 0) return false;
    if (ready < 0 && errno != EINTR) return false;
    if (ready < 0) continue;
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    const auto room = kOutputBytesMax - output.size();
    output.append(bytes.data(), std::min(static_cast<std::size_t>(got), room));
  }
}

}  // namespace

std::optional<fs::path> find_program(std::string_view name) {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t end = folders.find(':');
    const fs::path program = fs::path(folders.substr(0, end)) / name;
    std::error_code error;
    if (program.is_absolute() && fs::is_regular_file(program, error) &&
        ::access(program.c_str(), X_OK) == 0)
      return program;
    folders = end == std::string_view::npos ? "" : folders.substr(end + 1);
  }
  return std::nullopt;
}

Result<Ran> run_quietly(const std::vector<std::string>& words) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail(Fault::kIo, std::strerror(errno), "");
  const UniqueFd out(ends[0]);
  UniqueFd in(ends[1]);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, in.get(), STDERR_FILENO);
  const auto child = start(words, &actions);
  ::posix_spawn_file_actions_destroy(&actions);
  in.reset();
  if (!child) return tl::unexpected(child.error());
  Ran ran;
  const bool ended = read_all(out.get(), ran.output);
  if (!ended) ::kill(-*child, SIGKILL);
  ran.status = wait_for(*child);
  if (!ended)
    return fail(Fault::kNotReady, words.front() + " did not end in time", "run it by hand");
  return ran;
}

Result<int> run_shown(const std::vector<std::string>& words) {
  const auto child = start(words, nullptr);
  if (!child) return tl::unexpected(child.error());
  return wait_for(*child);
}

}  // namespace efimd::service
