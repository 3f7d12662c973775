#include "daemon/config/passed_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>

namespace efimd::service {

namespace {

constexpr int kFirstFd = 3;  // where systemd puts the first one

std::string taken_from_environment(const char* name) {
  const char* value = std::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

int option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/// The path to which a Unix socket is bound; empty if it is none, or bound to no file.
std::filesystem::path bound_to(int fd) {
  sockaddr_un address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (address.sun_family != AF_UNIX || size <= offsetof(sockaddr_un, sun_path)) return {};
  return {std::string(address.sun_path)};
}

/// The same file by any path, because a home folder may be reached through a link.
bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
  struct stat first {
  }, second{};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

Result<std::optional<UniqueFd>> take_passed_socket(const std::filesystem::path& path) {
  const std::string pid = taken_from_environment("LISTEN_PID");
  const std::string count = taken_from_environment("LISTEN_FDS");
  ::unsetenv("LISTEN_FDNAMES");
  if (pid != std::to_string(::getpid())) return std::nullopt;  // meant for a process above us
  const auto refuse = [&](const std::string& what) {
    return fail(Fault::kBadInput, "the service manager passed " + what,
                "let its socket unit listen at " + path.string() +
                    " only; 'efimd autostart enable' writes such a unit");
  };
  if (count != "1") return refuse(count + " sockets");
  UniqueFd fd(kFirstFd);
  ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC);
  if (option_of(fd.get(), SO_TYPE) != SOCK_STREAM)
    return refuse("something that is not a stream socket");
  if (option_of(fd.get(), SO_ACCEPTCONN) != 1) return refuse("a socket that does not listen");
  if (const auto bound = bound_to(fd.get()); !same_file(bound, path))
    return refuse("a socket at \"" + bound.string() + "\"");
  return fd;
}

}  // namespace efimd::service
