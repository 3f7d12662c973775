#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/paths.h"
#include "lsp/framing.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

/// How to start a daemon; tests use another program.
struct SpawnPlan {
  std::vector<std::string> command;      ///< argv; "--ready-fd" and its number are added
  std::vector<std::string> environment;  ///< "NAME=value"
  std::filesystem::path log_file;        ///< the daemon's stderr goes to its end

  /// This executable as `efimd serve --background`, with what a daemon needs of this process's
  /// environment. The EFIMD_* paths are made absolute, because the daemon works in "/".
  static Result<SpawnPlan> this_program(const Paths& paths);
  /// The program of that name beside this executable, with the same environment and no arguments.
  /// kNotFound if it is not there. efimd and its daemon have no code for networks: efimd-http has.
  static Result<SpawnPlan> beside(const Paths& paths, std::string_view name);
  /// Adds what makes efimd the daemon.
  SpawnPlan& serving();
};

/// A connection to the user's daemon; kNotFound if none runs. Refuses a daemon of another user.
Result<UniqueFd> connect_to_daemon(const Paths& paths);

/// A connection to the user's daemon; starts it if none runs. Racing callers start only one. The
/// holder of the spawn lock starts it; the others wait for the lock and then find the daemon.
///
/// Blocks until the daemon listens, or says why it cannot (that message is the error), or until the
/// deadline. Cost: about 5 ms when it starts one (it listens before it loads a model).
Result<UniqueFd> connect_or_spawn(const Paths& paths, const SpawnPlan& plan, Deadline deadline);

/// One JSON-RPC conversation with the daemon, for the commands of the CLI.
///
/// Thread: its owner's, which blocks; the process ignores SIGPIPE.  Fails with kNotReady past a
/// deadline, kIo if the daemon went away, kBadInput if it sent nonsense. After a failure the
/// connection is of no use.
class RpcClient {
 public:
  explicit RpcClient(UniqueFd socket) : socket_(std::move(socket)) {}

  /// Notifications that arrive while a request waits; requests of the daemon are answered with
  /// null.
  std::function<void(const std::string& method, const lsp::Json& params)> on_notification;

  /// The result, or the daemon's error as kUnsupported (no such method) or kBadInput.
  Result<lsp::Json> request(std::string_view method, lsp::Json params, Deadline deadline);
  Result<void> notify(std::string_view method, lsp::Json params, Deadline deadline);
  /// Takes messages until `enough()` or the deadline (kNotReady).
  Result<void> listen(const std::function<bool()>& enough, Deadline deadline);

 private:
  Result<void> send(std::string_view body, Deadline deadline);
  Result<lsp::Message> receive(Deadline deadline);
  /// Handles a message that is not an answer.
  Result<void> take_aside(const lsp::Message& message, Deadline deadline);

  UniqueFd socket_;
  lsp::FrameReader frames_;
  std::int64_t last_id_ = 0;
};

}  // namespace efimd::service
