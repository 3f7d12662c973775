#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace efimd::service {

/// A Unix socket's path with its ending zero must fit sockaddr_un (108 on Linux, 104 on macOS).
extern const std::size_t kSocketPathMax;

/// The paths of this user's daemon. Only names: nothing is created, see ensure_private_directory().
///
///   socket, locks  EFIMD_RUNTIME_DIR | $XDG_RUNTIME_DIR/efimd | /run/user/UID/efimd |
///   TEMP/efimd-UID configuration  EFIMD_CONFIG | $XDG_CONFIG_HOME/efimd/config.toml |
///   ~/.config/efimd/config.toml KV             EFIMD_CACHE_DIR | $XDG_CACHE_HOME/efimd |
///   ~/.cache/efimd log            EFIMD_STATE_DIR | $XDG_STATE_HOME/efimd | ~/.local/state/efimd
///
/// Relative XDG_* values are ignored, as their specification says; relative EFIMD_* ones are made
/// absolute.
struct Paths {
  std::filesystem::path runtime_dir;
  std::filesystem::path config_file;
  std::filesystem::path cache_dir;
  std::filesystem::path state_dir;
  /// What a user should know about the choice ("no $XDG_RUNTIME_DIR: …"), for doctor and the log.
  std::vector<std::string> notes;

  std::filesystem::path socket() const { return runtime_dir / "daemon.sock"; }
  /// flock()ed by the daemon for life; its pid is inside. A starting daemon waits for it with a
  /// deadline, because its predecessor unlinks the socket first and releases the lock last.
  std::filesystem::path daemon_lock() const { return runtime_dir / "daemon.lock"; }
  /// flock()ed by the process that starts the daemon, so that racing bridges start only one.
  std::filesystem::path spawn_lock() const { return runtime_dir / "spawn.lock"; }
  /// The KV store's folder.
  std::filesystem::path store_dir() const { return cache_dir / "kv"; }
  /// The measured error of 8-bit KV (kv_choice.h).
  std::filesystem::path kv_errors_file() const { return state_dir / "kv_errors.json"; }
  /// How long devices take for an answer (device_trials.h).
  std::filesystem::path trials_file() const { return state_dir / "device_trials.json"; }
  /// The digests of models' weights (read_ahead.h).
  std::filesystem::path weights_file() const { return state_dir / "weights.json"; }
  /// Outside the cache folder: pages that outlive a cache cleared under a daemon are found again.
  std::filesystem::path page_key_file() const { return state_dir / "page_key"; }
  std::filesystem::path taste_file() const { return state_dir / "taste"; }
  std::filesystem::path pace_file() const { return state_dir / "pace"; }
  /// flock()ed by the efimd-http that serves by HTTP, for life; its pid is inside.
  std::filesystem::path http_lock() const { return runtime_dir / "http.lock"; }
  /// What it serves, or why not (http_state.h).
  std::filesystem::path http_state() const { return runtime_dir / "http.state"; }
  /// What clients of efimd-http must send; they keep it in their configuration, so it lasts.
  std::filesystem::path http_token_file() const { return state_dir / "http_token"; }
  /// efimd-http listens there for the daemon, and holds the lock, if engine.url names an engine.
  std::filesystem::path remote_socket() const { return runtime_dir / "remote.sock"; }
  std::filesystem::path remote_lock() const { return runtime_dir / "remote.lock"; }
  std::filesystem::path log_file() const { return state_dir / "efimd.log"; }
};

/// The questions of find_paths() to the process and the machine; tests answer them differently.
struct Surroundings {
  /// Unset or empty: nullopt.
  std::function<std::optional<std::string>(const char* name)> variable;
  uid_t user = 0;
  std::filesystem::path run_user_root;  ///< "/run/user"
  std::filesystem::path temp_directory;
  std::filesystem::path home;  ///< if $HOME is no absolute path; may be empty

  static Surroundings of_this_process();
};

/// kBadInput if the socket's path would be longer than the system allows, or if no home directory
/// is known.
Result<Paths> find_paths(const Surroundings& surroundings = Surroundings::of_this_process());

}  // namespace efimd::service
