#include <fmt/format.h>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/http.h"
#include "daemon/client/client.h"
#include "daemon/client/spawn.h"

namespace efimd::service {

Result<Stopped> stop_daemon(const Paths& paths) {
  const auto by_signal = [&]() -> Result<Stopped> {
    const auto ended = end_holder(paths.daemon_lock(), "the daemon");
    if (!ended) return tl::unexpected(ended.error());
    return *ended ? Stopped::kFinished : Stopped::kNoneRan;
  };
  auto socket = connect_to_daemon(paths);
  if (!socket) {
    // One whose socket was removed, or that hangs, holds its lock.
    const Fault fault = socket.error().fault;
    if (fault == Fault::kNotFound || fault == Fault::kNotReady) return by_signal();
    return tl::unexpected(socket.error());
  }
  const auto pid = LockFile::last_holder(paths.daemon_lock());
  RpcClient client(std::move(*socket));
  const auto asked =
      client.request("efim/stop", nullptr, std::chrono::steady_clock::now() + kStatusAnswerMax);
  if (!asked && asked.error().fault == Fault::kNotReady) return by_signal();
  // Somebody else asked, too, and it has gone or is going.
  if (!asked && asked.error().fault != Fault::kIo) return tl::unexpected(asked.error());
  if (const auto ended = wait_for_end(paths.daemon_lock(), pid); !ended)
    return tl::unexpected(ended.error());
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
