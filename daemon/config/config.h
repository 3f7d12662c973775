#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/completion/completion.h"
#include "engine/backend/gpu/variants.h"
#include "engine/backend/kv_type.h"
#include "engine/backend/weights_form.h"

namespace efimd::service {

/// Something in config.toml or the environment that is ignored; never fatal.
struct ConfigWarning {
  int line = 0;  ///< of the file; 0 if it is about the whole file or the environment
  std::string message;

  bool operator==(const ConfigWarning&) const = default;
};

/// [http]: of efimd-http, which serves clients that speak no LSP.
struct HttpConfig {
  bool enable = false;  ///< whether the daemon's start starts it, too
  int port = 8012;
  bool require_token = true;

  bool operator==(const HttpConfig&) const = default;
};

/// [engine]: a server elsewhere that answers before the engine of this machine. Off by default.
struct RemoteConfig {
  std::string url;       ///< empty: there is none
  std::string model;     ///< its name there; empty: the first that the server names
  std::string key_file;  ///< holds the server's key; empty: EFIMD_ENGINE_KEY
  /// Text that frames a prompt; empty: by the model's name.
  std::string prefix, suffix, middle;
  int time_limit_ms = 1500;  ///< until its first text; then the local engine answers
  int window_tokens = 4096;  ///< of text that it is shown
  int slot = -1;             ///< of a llama-server with several; -1: it chooses

  bool operator==(const RemoteConfig&) const = default;
};

/// The user's configuration, with defaults for the rest. A value: read once at start.
struct Config {
  std::optional<std::filesystem::path> model;  ///< as written; model_catalog.h finds the file
  std::string model_source;          ///< "config.toml" or "EFIMD_MODEL"; empty without model
  engine::FimOverride fim;           ///< [model.fim]
  std::string device_kind = "auto";  ///< "auto" or one of engine::kDeviceKinds
  std::optional<std::size_t> device_memory_mb;  ///< of a GPU; nullopt: what is free there
  int device_idle_release_s = 600;              ///< 0: never
  int device_threads = 0;                       ///< 0: one per physical core
  engine::WeightsForm device_weights = engine::WeightsForm::kAuto;
  engine::gpu::Variants gpu_variants = engine::gpu::kConfirmedVariants;
  engine::KvType kv_type = engine::KvType::kF16;  ///< wanted; choose_kv_type() decides
  std::optional<std::size_t> cache_memory_mb;     ///< nullopt: automatic, see kv_budget_bytes()
  std::optional<std::size_t> cache_host_mb;       ///< nullopt: automatic, see host_budget_bytes()
  std::optional<std::size_t> cache_disk_mb;       ///< nullopt: automatic, see disk_budget_bytes()
  std::vector<std::string> cache_exclude;         ///< globs, see exclusions.h
  bool cache_gitignore = false;
  /// false: the file is there, and what it excludes could not be read. Then nothing is kept on disk,
  /// and remote.url is empty.
  bool exclusions_known = true;
  bool secret_files = false;  ///< whether files that may hold secrets are completed
  completion::Options completion;
  std::optional<int> window_tokens;  ///< nullopt: automatic, see completion::set_pace()
  bool context_files = true;         ///< "auto": other files are shown to models trained so (A-13)
  bool context_edits = false;  ///< "on": what was edited elsewhere is shown to them, too (A-14)
  int idle_exit_s = 900;       ///< 0: never
  bool sandbox = true;         ///< see sandbox.h
  HttpConfig http;
  RemoteConfig remote;
  std::string log_level = "info";

  std::filesystem::path file;  ///< the path of the file
  bool file_read = false;      ///< false: absent, unreadable or malformed; defaults are in use
  std::vector<ConfigWarning> warnings;

  bool operator==(const Config&) const = default;
};

/// Reads `text`; unknown keys and wrong types become warnings and leave the default. Malformed TOML
/// leaves all defaults, and exclusions_known is false then. `file` is for messages.
Config parse_config(std::string_view text, const std::filesystem::path& file);

/// Reads `file` (absent is fine), then EFIMD_MODEL and EFIMD_DEVICE through `environment`
/// (std::getenv's shape). Limits: files over kConfigBytesMax (config.cpp) are refused with a
/// warning.
Config load_config(const std::filesystem::path& file,
                   const std::function<const char*(const char*)>& environment);
/// The same with the process's environment.
Config load_config(const std::filesystem::path& file);

/// Bytes for KV: the configured number, else an eighth of the memory that it may use, at most 1 GiB.
std::size_t kv_budget_bytes(const Config& config);
/// Bytes for KV in the host's memory, for devices with memory of their own.
std::size_t host_budget_bytes(const Config& config);
/// Bytes for KV on disk: the configured number, else a tenth of the free space there and the
/// store's own size, at most 10 GiB. 0: nothing is kept.
std::size_t disk_budget_bytes(const Config& config, const std::filesystem::path& cache_dir);

}  // namespace efimd::service
