#include "daemon/client/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "daemon/config/local_socket.h"

namespace efimd::service {

namespace {

/// The child's descriptor of the readiness pipe, right after its standard streams.
constexpr int kReadyFd = 3;
/// A longer message of a daemon that failed is cut.
constexpr std::size_t kReadyBytesMax = 4096;
constexpr auto kStopMax = std::chrono::seconds(15);
/// Between looks at the lock, whose holder decides when it is let go.
constexpr auto kLook = std::chrono::milliseconds(10);

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0)
    return fail(Fault::kIo, std::string("no pipe: ") + std::strerror(errno));
  ::fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  ::fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

struct ChildFiles {
  int nothing;  ///< /dev/null
  int log;
  int ready;
};

/// Runs between fork and exec. Makes only async-signal-safe calls, because the caller may have
/// threads.
[[noreturn]] void become_daemon(const ChildFiles& files, char* const* argv,
                                char* const* environment) {
  if (::setsid() < 0 || ::chdir("/") != 0) ::_exit(127);
  const pid_t grandchild = ::fork();
  if (grandchild != 0) ::_exit(grandchild < 0 ? 127 : 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  close_on_exec_from(kReadyFd);  // an editor's files are not the daemon's to hold
  ::dup2(files.nothing, STDIN_FILENO);
  ::dup2(files.nothing, STDOUT_FILENO);
  ::dup2(files.log, STDERR_FILENO);
  if (files.ready == kReadyFd)
    ::fcntl(kReadyFd, F_SETFD, 0);
  else
    ::dup2(files.ready, kReadyFd);
  ::execve(argv[0], argv, environment);
  ::_exit(127);
}

int milliseconds_until(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30));
}

/// The program, as messages call it.
std::string name_of(const SpawnPlan& plan) {
  const std::string file = std::filesystem::path(plan.command.front()).filename().string();
  return file == "efimd-http" ? file : "the daemon";
}

/// Reads the daemon's first line, which decides.
Result<void> wait_until_ready(int fd, const SpawnPlan& plan, Deadline deadline) {
  std::string said;
  while (said.find('\n') == std::string::npos && said.size() < kReadyBytesMax) {
    pollfd waiting{fd, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0)
      return fail(Fault::kNotReady, name_of(plan) + " was started, but does not listen yet",
                  "try again, or look into " + plan.log_file.string());
    std::array<char, 512> bytes{};
    const ssize_t size = ::read(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    said.append(bytes.data(), static_cast<std::size_t>(size));
  }
  if (said.starts_with(kReadyLine)) return {};
  if (said.empty())
    return fail(Fault::kIo, name_of(plan) + " died while it started (" + plan.command.front() + ")",
                "look into " + plan.log_file.string() + ", or run 'efimd serve' to see why");
  if (said.back() == '\n') said.pop_back();
  return fail(Fault::kIo, name_of(plan) + " does not start: " + said);
}

/// Does not wait for the reader of a pipe.
UniqueFd open_log(const std::filesystem::path& path) {
  make_private_folder(path.parent_path());
  UniqueFd log(::open(path.c_str(),
                      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  return log ? std::move(log) : UniqueFd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
}

}  // namespace

Result<void> spawn_daemon(const SpawnPlan& plan, Deadline deadline) {
  auto pipe = make_pipe();
  if (!pipe) return tl::unexpected(pipe.error());
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd log = open_log(plan.log_file);
  std::vector<std::string> command = plan.command;
  command.insert(command.end(), {"--ready-fd", std::to_string(kReadyFd)});
  const std::vector<char*> argv = pointers_to(command);
  const std::vector<char*> environment = pointers_to(plan.environment);
  const pid_t child = ::fork();
  if (child < 0) return fail(Fault::kIo, std::string("cannot fork: ") + std::strerror(errno));
  if (child == 0)
    become_daemon({nothing.get(), log.get(), pipe->write_end.get()}, argv.data(),
                  environment.data());
  pipe->write_end.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return wait_until_ready(pipe->read_end.get(), plan, deadline);
}

Result<bool> end_holder(const std::filesystem::path& lock, std::string_view name) {
  if (!LockFile::is_held(lock)) return false;
  // In another user's folder the lock may name any process of this one.
  if (auto own = ensure_private_directory(lock.parent_path()); !own)
    return tl::unexpected(own.error());
  const auto pid = LockFile::last_holder(lock);
  if (!pid || *pid <= 1 || ::kill(*pid, SIGTERM) != 0)
    return fail(Fault::kIo, std::string(name) + " cannot be asked to finish", "end it with kill");
  if (const auto ended = wait_for_end(lock, pid); !ended) return tl::unexpected(ended.error());
  return true;
}

Result<void> wait_for_end(const std::filesystem::path& lock, std::optional<int> pid) {
  const Deadline deadline = std::chrono::steady_clock::now() + kStopMax;
  while (LockFile::is_held(lock) && LockFile::last_holder(lock) == pid) {
    const std::string holder = std::to_string(pid.value_or(0));
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Fault::kNotReady, "process " + holder + " was asked to finish, but still runs",
                  "end it with 'kill -9 " + holder + "'");
    std::this_thread::sleep_for(kLook);
  }
  return {};
}

}  // namespace efimd::service
