#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>

#include "base/error.h"
#include "cache_store/store_service.h"
#include "daemon/completion/completion.h"
#include "daemon/completion/documents/page_keeper.h"
#include "daemon/completion/documents/taste_keeper.h"
#include "daemon/completion/pace_keeper.h"
#include "daemon/config/config.h"
#include "daemon/config/http_state.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/sandbox.h"
#include "daemon/models/config_watch.h"
#include "daemon/models/engine_host.h"
#include "daemon/server/file_judge.h"

namespace spdlog {
class logger;
}

namespace efimd::service {

/// The user's one daemon: lock, listening socket, sessions, completion service.
///
/// Thread: open() and run() on one, which is the io thread while run() lasts; stop() from any.
/// Owns: the lock for life, the socket's file while it listens.
/// Limits: sessions_max; for more, the one gives way that has been silent for longest before
/// initialize, else they are closed at once, with a line in the log.
/// lifetime.h says how it ends without losing an editor.
class Daemon {
 public:
  struct Settings {
    std::filesystem::path socket;
    std::filesystem::path lock;
    UniqueFd passed;  ///< listens at `socket` already, for a service manager that keeps it (D-5)
    Config config;
    completion::EngineFactory engine;
    std::function<bool()> may_load_again;  ///< see CompletionService::Settings
    std::shared_ptr<OpenedModel> opened_model;
    std::shared_ptr<store::StoreService> store;          ///< KV on disk; null: none is kept
    std::shared_ptr<completion::PageKeeper> keeper;      ///< over it, for the engine's thread
    std::shared_ptr<const completion::PaceKeeper> pace;  ///< null: a start measures for itself
    std::shared_ptr<completion::TasteKeeper> taste;      ///< null: what is taken is not kept
    completion::RemoteSettings remote;                   ///< the engine elsewhere, if there is one
    /// Made by open() where there are none. Tests stall `facts`.
    std::shared_ptr<FileThreads> file_threads;
    std::shared_ptr<FileThreads> project_threads;
    std::function<FileFacts(const std::string& uri)> facts;
    /// Whether the configuration has changed, see watch_config(); empty: it never does.
    std::function<ConfigLook()> look_at_config;
    std::chrono::milliseconds look_pause{1000};  ///< between two looks
    std::function<HttpState()> http;             ///< for the status
    SandboxStatus sandbox;                       ///< for the status
    std::string model_path;                      ///< for the status; empty if none was found
    std::string model_reason;                    ///< why that one
    std::shared_ptr<spdlog::logger> log;
    std::chrono::milliseconds idle_exit{0};  ///< 0: never
    /// A daemon that was asked to retire does so after this time without a request.
    std::chrono::milliseconds retire_quiet{1500};
    /// How long open() waits for a daemon that is leaving.
    std::chrono::milliseconds lock_wait{5000};
    std::size_t sessions_max = 256;
    /// Of a connection before initialize, and of a message from its first byte to its last.
    std::chrono::milliseconds silence_max{60'000};
    std::chrono::milliseconds frame_max{60'000};
    std::size_t output_bytes_max = std::size_t{16} << 20;
    /// Called on io between the decision to leave and unlinking the socket, so that tests can
    /// connect then.
    std::function<void()> before_leaving;
  };

  /// Takes the lock, listens and begins to load the model. kNotReady, with its pid, if another
  /// daemon runs.
  static Result<std::unique_ptr<Daemon>> open(Settings settings);
  ~Daemon();

  /// Serves until stop(), efim/stop, efim/retire, a signal, or idleness.
  void run();
  void stop();
  /// From this call on, SIGTERM, SIGINT and SIGHUP stop this daemon.
  void stop_on_signals();

 private:
  class Impl;
  explicit Daemon(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace efimd::service
