#pragma once

#include <memory>
#include <optional>
#include <string>

#include "daemon/client/client.h"
#include "daemon/config/config.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/paths.h"
#include "net/http/server.h"
#include "net/program/keep_serving.h"
#include "net/remote/server.h"

namespace efimd::net {

/// What efimd-http serves: clients by HTTP, and the daemon with an engine elsewhere if engine.url
/// names one. One process serves both, so a user has one program that meets a network.
///
/// It holds http.lock while it serves by HTTP, and remote.lock while it serves the daemon. One that
/// serves the daemon alone ends when another takes both. That one, at its end, starts it again.
class Doors {
 public:
  struct Options {
    std::optional<int> port;   ///< instead of http.port
    bool engine_only = false;  ///< for the daemon alone
  };
  /// `ready` learns once that it listens, or why it cannot.
  Doors(service::Paths paths, Options options, service::UniqueFd ready);

  /// Reads the configuration and takes what it names. kNotReady if another process has it,
  /// kNotFound if there is nothing to serve.
  Result<Serve> prepare();
  /// Whether the configuration or the token is another one than what prepare() read.
  bool has_changed() const;
  /// For who waits: why it did not come to listen.
  void report(const Error& error);

  /// In the starter, at its end. If it was `asked`, the daemon may still want the engine elsewhere.
  void close(bool asked);

 private:
  Result<void> take_http();
  Result<void> take_engine(const service::Config& config);
  void drop_engine();
  Result<http::Server::Settings> http_settings(const service::Config& config);
  int serve(const std::optional<http::Server::Settings>& http, pid_t starter);

  service::Paths paths_;
  Options options_;
  service::UniqueFd ready_;
  std::optional<service::LockFile> http_lock_, engine_lock_;
  service::UniqueFd engine_listener_;
  service::Config config_;  ///< as it was read
  std::optional<std::string> token_;
  std::optional<remote::Server::Settings> engine_;
};

}  // namespace efimd::net
