#include "daemon/client/end_watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <utility>

namespace efimd::service {

namespace {

#ifndef POLLRDHUP
#define POLLRDHUP 0  // other systems say so by POLLHUP
#endif

/// A descriptor that becomes readable when the process ends; none where the system has no such.
UniqueFd descriptor_of(long process) {
#if defined(__linux__) && defined(SYS_pidfd_open)
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
#else
  static_cast<void>(process);
  return {};
#endif
}

/// 0 if it is unknown.
long parent_of(long process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("PPid:")) return std::strtol(line.c_str() + 5, nullptr, 10);
  return 0;
}

bool is_above(long process) {
  constexpr int kDepthMax = 64;
  long above = ::getppid();
  for (int depth = 0; above > 1 && depth < kDepthMax; ++depth) {
    if (above == process) return true;
    above = parent_of(above);
  }
  return false;
}

}  // namespace

EndWatch::EndWatch(Settings settings) : settings_(std::move(settings)), parent_(::getppid()) {
  std::array<int, 2> wake{-1, -1};
  if (::pipe(wake.data()) != 0) return;  // without a watch, only the bridge itself looks
  for (const int end : wake) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  wake_read_ = UniqueFd(wake[0]);
  wake_write_ = UniqueFd(wake[1]);
  thread_ = std::thread([this] { run(); });
}

EndWatch::~EndWatch() {
  wake_write_.reset();
  if (thread_.joinable()) thread_.join();
}

void EndWatch::watch_editor(long process) {
  if (!wake_write_ || !is_above(process)) return;
  // A pipe that was never written to takes a number whole; without it only the parent is watched.
  [[maybe_unused]] const auto written = ::write(wake_write_.get(), &process, sizeof process);
}

void EndWatch::run() {
  UniqueFd parent_end = parent_ > 1 ? descriptor_of(parent_) : UniqueFd();
  // A parent that ended before it could be looked at has left the bridge to another one.
  const bool orphan = ::getppid() != parent_;
  UniqueFd editor_end;
  while (!orphan) {
    std::array<pollfd, 4> ends = {
        pollfd{wake_read_.get(), POLLIN, 0}, pollfd{settings_.editor_in, POLLRDHUP, 0},
        pollfd{parent_end.get(), POLLIN, 0}, pollfd{editor_end.get(), POLLIN, 0}};
    if (::poll(ends.data(), ends.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (ends[0].revents != 0) {
      long process = 0;
      if (::read(wake_read_.get(), &process, sizeof process) != sizeof process) return;
      editor_end = descriptor_of(process);
      continue;
    }
    break;
  }
  pollfd wake{wake_read_.get(), POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + settings_.grace;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return settings_.end();
    if (::poll(&wake, 1, static_cast<int>(left.count())) <= 0) continue;
    long process = 0;  // a process that is named now changes nothing
    if (::read(wake_read_.get(), &process, sizeof process) <= 0) return;
  }
}

}  // namespace efimd::service
