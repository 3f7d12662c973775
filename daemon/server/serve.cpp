#include "daemon/server/serve.h"

#include <fmt/format.h>
#include <pthread.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "base/limits.h"
#include "base/memory_reserve.h"
#include "daemon/config/build.h"
#include "daemon/config/passed_socket.h"
#include "daemon/config/printable.h"
#include "daemon/config/program.h"
#include "daemon/config/sandbox.h"
#include "daemon/config/version.h"
#include "daemon/files/secrets.h"
#include "daemon/models/engine_host.h"
#include "daemon/models/model_catalog.h"
#include "daemon/models/remote_link.h"
#include "daemon/server/daemon.h"

namespace efimd::service {

namespace {

constexpr std::size_t kLogBytesMax = std::size_t{5} << 20;  ///< then the file is turned over
constexpr std::size_t kLogFilesMax = 2;                     ///< beside the current one

spdlog::sink_ptr make_sink(const Paths& paths, ServeOptions::LogTo to) {
  if (to == ServeOptions::LogTo::kStderr) return std::make_shared<spdlog::sinks::stderr_sink_st>();
  std::error_code error;
  const auto kind = std::filesystem::status(paths.log_file(), error).type();
  if (kind != std::filesystem::file_type::not_found &&
      kind != std::filesystem::file_type::regular) {
    fmt::print(stderr, "efimd: {} is no file; logging here\n",
               printable(paths.log_file().string()));
    return std::make_shared<spdlog::sinks::stderr_sink_st>();
  }
  try {
    return std::make_shared<spdlog::sinks::rotating_file_sink_st>(paths.log_file().string(),
                                                                  kLogBytesMax, kLogFilesMax);
  } catch (const spdlog::spdlog_ex& failure) {
    fmt::print(stderr, "efimd: no log file: {}; logging here\n", printable(failure.what()));
    return std::make_shared<spdlog::sinks::stderr_sink_st>();
  }
}

/// A message as a terminal may show it: names in it come from models, paths and other programs.
/// It stays one line, for a name may hold line ends.
class PrintableMessage : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&,
              spdlog::memory_buf_t& out) override {
    std::string text = printable({message.payload.data(), message.payload.size()});
    std::ranges::replace(text, '\n', ' ');
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override {
    return std::make_unique<PrintableMessage>();
  }
};

/// Thread: io only, so that sinks need no lock.
std::shared_ptr<spdlog::logger> make_log(const Paths& paths, const Config& config,
                                         ServeOptions::LogTo to) {
  auto log = std::make_shared<spdlog::logger>("efimd", make_sink(paths, to));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<PrintableMessage>('*').set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %*");
  log->set_formatter(std::move(formatter));
  log->set_level(spdlog::level::from_str(config.log_level));
  log->flush_on(spdlog::level::info);
  return log;
}

/// The device in use, and the ones that were skipped.
void log_start(spdlog::logger& log, const Paths& paths, const Config& config,
               const Result<ModelChoice>& model, const SandboxStatus& sandbox) {
  log.info("efimd {} (pid {}) listens at {}", version(), ::getpid(), paths.socket().string());
  for (const std::string& note : paths.notes) log.info("{}", note);
  log.info("configuration: {}{}", config.file.string(), config.file_read ? "" : " (not in use)");
  for (const ConfigWarning& warning : config.warnings)
    log.warn("configuration, line {}: {}", warning.line, warning.message);
  if (model) log.info("model: {} ({})", model->path.string(), model->reason);
  if (const std::string text = sandbox_text(sandbox); config.sandbox && !sandbox.why.empty())
    log.warn("sandbox: {}", text);
  else
    log.info("sandbox: {}", text);
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
  const std::size_t disk = disk_budget_bytes(config, paths.cache_dir);
  if (disk > 0 && config.exclusions_known) {
    store::StoreService::Settings of_store;
    of_store.store.folder = paths.store_dir();
    of_store.store.budget_bytes = disk;
    settings.store = std::make_shared<store::StoreService>(std::move(of_store));
    settings.keeper = std::make_shared<completion::PageKeeper>(settings.store);
  }
  settings.pace = std::make_shared<completion::PaceKeeper>(paths.pace_file());
  settings.http = [paths] { return http_state(paths); };
  settings.taste = std::make_shared<completion::TasteKeeper>(paths.taste_file());
  if (!config.remote.url.empty()) {
    const RemoteConfig& remote = config.remote;
    settings.remote = {make_remote_link(paths.remote_socket(), remote),
                       {remote.prefix, remote.suffix, remote.middle},
                       remote.window_tokens};
  }
  EngineSetup engine;
  engine.model = model.map([](const ModelChoice& chosen) { return chosen.path; });
  engine.device_kind = config.device_kind;
  engine.device_memory_bytes = config.device_memory_mb.value_or(0) << 20U;
  engine.threads = config.device_threads;
  engine.weights = config.device_weights;
  engine.gpu_variants = config.gpu_variants;
  engine.kv_budget_bytes = kv_budget_bytes(config);
  engine.kv_may_shrink = !config.cache_memory_mb;
  engine.host_budget_bytes = host_budget_bytes(config);
  engine.window_tokens = config.window_tokens;
  engine.fim = config.fim;
  engine.kv_type = config.kv_type;
  engine.kv_errors_file = paths.kv_errors_file();
  engine.trials_file = paths.trials_file();
  engine.weights_file = paths.weights_file();
  engine.keeper = settings.keeper;
  if (settings.store) engine.page_key_file = paths.page_key_file();
  engine.cache_dir = paths.cache_dir;
  settings.may_load_again = watch_model_files(engine.model);
  settings.engine = make_engine_factory(std::move(engine), settings.opened_model);
  return settings;
}

bool is_secret(const std::filesystem::path& path, bool is_folder) {
  return !secret_by_name(path.string() + (is_folder ? "/-" : "")).empty();
}

/// For a thread that reads the user's projects.
void confine_to_projects() {
  const char* const home = std::getenv("HOME");
  std::error_code error;
  const std::filesystem::path real =
      std::filesystem::weakly_canonical(home == nullptr ? "/" : home, error);
  static_cast<void>(confine_thread(user_files(error ? "/" : real, is_secret)));
}

/// The model may be one of several files. Not all of the home folder for one that lies there.
void add_model(const std::filesystem::path& model, Reachable& files) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(model, error);
  const char* const home = std::getenv("HOME");
  const bool deep =
      std::ranges::distance(real) > 3 && (home == nullptr || real.parent_path() != home);
  files.read.push_back(deep ? real.parent_path() : real);
  files.read.push_back(model);
}

/// The second line of defence. The threads that read projects keep more rights than all others, so
/// they are made in between.
SandboxStatus confine(const Paths& paths, const Result<ModelChoice>& model,
                      Daemon::Settings& settings) {
  SandboxStatus status;
  const Result<void> calls = forbid_calls();
  status.calls = calls.has_value();
  if (!calls) status.why = calls.error().message();
  settings.file_threads = std::make_shared<FileThreads>(confine_to_projects);
  settings.project_threads = std::make_shared<FileThreads>(confine_to_projects);
  Reachable files = system_files();
  make_private_folder(paths.cache_dir);
  files.write.insert(files.write.end(), {paths.runtime_dir, paths.state_dir, paths.cache_dir});
  if (model) add_model(model->path, files);
  const Result<void> confined = confine_thread(files);
  status.files = confined.has_value();
  if (!confined) status.why += (status.why.empty() ? "" : "; ") + confined.error().message();
  return status;
}

/// glibc raises its own limit with each large block that is freed, and then keeps all that is freed
/// later: a text of 16 MiB had cost 420 MiB for good.
void give_memory_back() {
#ifdef __GLIBC__
  constexpr int kLargeBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_TRIM_THRESHOLD, kLargeBytes);
#endif
}

/// A thread reserves 8 MiB for its stack and 64 MiB for a heap of its own: ten of them left no addresses
/// for a model of 16 MB below a limit of 512 MiB.
void save_addresses() {
#ifdef __GLIBC__
  constexpr std::size_t kFewBytes = std::size_t{2} << 30;
  constexpr std::size_t kStackBytes = std::size_t{1} << 20;
  const auto most = address_limit();
  if (!most || *most > kFewBytes) return;
  ::mallopt(M_ARENA_MAX, 1);
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  if (::pthread_attr_setstacksize(&attributes, kStackBytes) == 0)
    static_cast<void>(::pthread_setattr_default_np(&attributes));
  ::pthread_attr_destroy(&attributes);
#endif
}

int refuse(UniqueFd ready, const Error& error) {
  fmt::print(stderr, "efimd: {}\n", error.message());
  report_ready(std::move(ready), tl::unexpected(error));
  return 1;
}

}  // namespace

namespace {

int run(const Paths& paths, const Config& config, ServeOptions& options) {
  ::umask(077);
  keep_memory_private();
  give_memory_back();
  save_addresses();
  MemoryReserve::begin();
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
  if (config.sandbox) settings.sandbox = confine(paths, model, settings);
  if (*passed) settings.passed = std::move(**passed);
  // Nobody would start the next one in a terminal's place.
  if (options.log_to == ServeOptions::LogTo::kFile)
    settings.look_at_config = watch_config(paths, config);
  const SandboxStatus sandbox = settings.sandbox;
  auto daemon = Daemon::open(std::move(settings));
  if (!daemon) return refuse(std::move(options.ready), daemon.error());
  (*daemon)->stop_on_signals();
  report_ready(std::move(options.ready), {});
  log_start(*log, paths, config, model, sandbox);
  (*daemon)->run();
  log->info("finished");
  return 0;
}

}  // namespace

int run_daemon(const Paths& paths, const Config& config, ServeOptions options) {
  const auto no_thread = [&] {
    return refuse(
        std::move(options.ready),
        {Fault::kNoMemory, "the system gives the daemon no thread", remedy_for_no_thread()});
  };
  try {
    return run(paths, config, options);
  } catch (const std::bad_alloc&) {
    return refuse(std::move(options.ready),
                  {Fault::kNoMemory, "no memory for the daemon", remedy_for_no_memory()});
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) throw;
    return no_thread();
  } catch (const boost::system::system_error& error) {  // asio's, which is none of the others
    if (std::error_code(error.code()) != std::errc::resource_unavailable_try_again) throw;
    return no_thread();
  }
}

}  // namespace efimd::service
