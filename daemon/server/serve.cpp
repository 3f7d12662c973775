#include "daemon/server/serve.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <cstdio>
#include <memory>
#include <system_error>
#include <utility>

#include "daemon/config/build.h"
#include "daemon/config/passed_socket.h"
#include "daemon/config/version.h"
#include "daemon/models/engine_host.h"
#include "daemon/models/model_catalog.h"
#include "daemon/server/daemon.h"

namespace efimd::service {

namespace {

constexpr std::size_t kLogBytesMax = std::size_t{5} << 20;  ///< then the file is turned over
constexpr std::size_t kLogFilesMax = 2;                     ///< beside the current one

spdlog::sink_ptr make_sink(const Paths& paths, ServeOptions::LogTo to) {
  if (to == ServeOptions::LogTo::kStderr) return std::make_shared<spdlog::sinks::stderr_sink_st>();
  try {
    return std::make_shared<spdlog::sinks::rotating_file_sink_st>(paths.log_file().string(),
                                                                  kLogBytesMax, kLogFilesMax);
  } catch (const spdlog::spdlog_ex& error) {
    fmt::print(stderr, "efimd: no log file: {}; logging here\n", error.what());
    return std::make_shared<spdlog::sinks::stderr_sink_st>();
  }
}

/// Thread: io only, so that sinks need no lock.
std::shared_ptr<spdlog::logger> make_log(const Paths& paths, const Config& config,
                                         ServeOptions::LogTo to) {
  auto log = std::make_shared<spdlog::logger>("efimd", make_sink(paths, to));
  log->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  log->set_level(spdlog::level::from_str(config.log_level));
  log->flush_on(spdlog::level::info);
  return log;
}

/// What is in use, and what was passed over.
void log_start(spdlog::logger& log, const Paths& paths, const Config& config,
               const Result<ModelChoice>& model) {
  log.info("efimd {} (pid {}) listens at {}", version(), ::getpid(), paths.socket().string());
  for (const std::string& note : paths.notes) log.info("{}", note);
  log.info("configuration: {}{}", config.file.string(), config.file_read ? "" : " (not in use)");
  for (const ConfigWarning& warning : config.warnings)
    log.warn("configuration, line {}: {}", warning.line, warning.message);
  if (model) log.info("model: {} ({})", model->path.string(), model->reason);
}

Daemon::Settings settings_of(const Paths& paths, const Config& config,
                             const Result<ModelChoice>& model) {
  Daemon::Settings settings;
  settings.socket = paths.socket();
  settings.lock = paths.daemon_lock();
  settings.config = config;
  settings.idle_exit = std::chrono::seconds(config.idle_exit_s);
  settings.opened_model = std::make_shared<OpenedModel>();
  if (model) {
    settings.model_path = model->path.string();
    settings.model_reason = model->reason;
  }
  if (const std::size_t disk = disk_budget_bytes(config, paths.cache_dir); disk > 0) {
    store::StoreService::Settings of_store;
    of_store.store.folder = paths.store_dir();
    of_store.store.budget_bytes = disk;
    settings.store = std::make_shared<store::StoreService>(std::move(of_store));
    settings.keeper = std::make_shared<completion::PageKeeper>(settings.store);
  }
  EngineSetup engine;
  engine.model = model.map([](const ModelChoice& chosen) { return chosen.path; });
  engine.device_kind = config.device_kind;
  engine.device_memory_bytes = config.device_memory_mb.value_or(0) << 20U;
  engine.threads = config.device_threads;
  engine.weights = config.device_weights;
  engine.kv_budget_bytes = kv_budget_bytes(config);
  engine.host_budget_bytes = host_budget_bytes(config);
  engine.fim = config.fim;
  engine.kv_type = config.kv_type;
  engine.kv_errors_file = paths.kv_errors_file();
  engine.keeper = settings.keeper;
  engine.cache_dir = paths.cache_dir;
  settings.engine = make_engine_factory(std::move(engine), settings.opened_model);
  return settings;
}

/// The text that is typed must not come to the disk as a core, and other programs of the user need
/// not read it. LeakSanitizer has to read its own process.
void keep_memory_private() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);  // PR_SET_DUMPABLE does more, but Linux alone has it
#if defined(__linux__) && !defined(EFIMD_SANITIZED)
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

int refuse(UniqueFd ready, const Error& error) {
  fmt::print(stderr, "efimd: {}\n", error.message());
  report_ready(std::move(ready), tl::unexpected(error));
  return 1;
}

}  // namespace

int run_daemon(const Paths& paths, const Config& config, ServeOptions options) {
  ::umask(077);
  keep_memory_private();
  static_cast<void>(this_build());  // while its file is where it was started from
  if (const auto folder = ensure_private_directory(paths.runtime_dir); !folder)
    return refuse(std::move(options.ready), folder.error());
  auto passed = take_passed_socket(paths.socket());
  if (!passed) return refuse(std::move(options.ready), passed.error());
  std::error_code ignored;  // without a state folder the log goes to stderr
  std::filesystem::create_directories(paths.state_dir, ignored);
  const auto log = make_log(paths, config, options.log_to);
  const auto model = choose_model(config, find_model_places());
  Daemon::Settings settings = settings_of(paths, config, model);
  settings.log = log;
  if (*passed) settings.passed = std::move(**passed);
  auto daemon = Daemon::open(std::move(settings));
  if (!daemon) return refuse(std::move(options.ready), daemon.error());
  (*daemon)->stop_on_signals();
  report_ready(std::move(options.ready), {});
  log_start(*log, paths, config, model);
  (*daemon)->run();
  log->info("finished");
  return 0;
}

}  // namespace efimd::service
