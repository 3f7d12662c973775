#include <fmt/format.h>

#include <thread>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/http.h"
#include "daemon/client/client.h"

namespace efimd::service {

namespace {

constexpr auto kStopMax = std::chrono::seconds(15);
/// Between looks at the daemon's lock, whose holder decides when it is let go.
constexpr auto kLookForEnd = std::chrono::milliseconds(10);

}  // namespace

Result<Stopped> stop_daemon(const Paths& paths) {
  const Deadline deadline = std::chrono::steady_clock::now() + kStopMax;
  auto socket = connect_to_daemon(paths);
  if (!socket && socket.error().fault == Fault::kNotFound) return Stopped::kNoneRan;
  if (!socket) return tl::unexpected(socket.error());
  const auto pid = LockFile::last_holder(paths.daemon_lock());
  RpcClient client(std::move(*socket));
  if (const auto stopped = client.request("efim/stop", nullptr, deadline); !stopped)
    return tl::unexpected(stopped.error());
  // An editor may have started the next one already: then the lock has another holder.
  while (LockFile::is_held(paths.daemon_lock()) &&
         LockFile::last_holder(paths.daemon_lock()) == pid) {
    if (std::chrono::steady_clock::now() >= deadline)
      return fail(Fault::kNotReady,
                  fmt::format("process {} was asked to finish, but still runs", pid.value_or(0)),
                  "end it with kill");
    std::this_thread::sleep_for(kLookForEnd);
  }
  return Stopped::kFinished;
}

int run_stop(const Paths& paths) {
  // First, because a request that it gets would start the next daemon.
  const auto http = stop_http(paths);
  if (!http) return failed(http.error());
  if (*http) fmt::print("efimd-http has finished\n");
  const auto stopped = stop_daemon(paths);
  if (!stopped) return failed(stopped.error());
  if (const auto elsewhere = stop_engine_elsewhere(paths); !elsewhere)
    return failed(elsewhere.error());
  fmt::print("{}\n",
             *stopped == Stopped::kFinished ? "the daemon has finished" : "no daemon is running");
  return 0;
}

}  // namespace efimd::service
