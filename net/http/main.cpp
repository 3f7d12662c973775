// efimd-http: serves llama-server's, OpenAI's and Ollama's completion requests on loopback, from the
// user's daemon. `efimd http` starts it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>

#include "daemon/client/client.h"
#include "daemon/config/config.h"
#include "daemon/config/program.h"
#include "daemon/config/this_system.h"
#include "daemon/config/version.h"
#include "net/http/server.h"

namespace efimd::http {

namespace {

struct Options {
  std::optional<int> port;
  int ready_fd = -1;
  bool print_token = false;
};

void say(const std::string& line) { std::fprintf(stderr, "efimd-http: %s\n", line.c_str()); }

int failed(const Error& error, service::UniqueFd ready = {}) {
  say(error.message());
  service::report_ready(std::move(ready), tl::unexpected(error));
  return 1;
}

/// `efimd serve`, of the efimd that stands beside this program.
Result<service::SpawnPlan> daemon_plan(const service::Paths& paths) {
  auto plan = service::SpawnPlan::this_program(paths);
  if (!plan) return plan;
  const auto efimd = std::filesystem::path(plan->command.front()).parent_path() / "efimd";
  if (::access(efimd.c_str(), X_OK) != 0)
    return fail(Fault::kNotFound, efimd.string() + ": not there",
                "install efimd-http beside efimd");
  plan->command.front() = efimd.string();
  return plan;
}

int serve(const service::Paths& paths, const Options& options) {
  service::UniqueFd ready(options.ready_fd);
  const service::Config config = service::load_config(paths.config_file);
  const auto plan = daemon_plan(paths);
  if (!plan) return failed(plan.error(), std::move(ready));
  if (auto folder = service::ensure_private_directory(paths.runtime_dir); !folder)
    return failed(folder.error(), std::move(ready));
  const auto lock = service::LockFile::try_lock(paths.http_lock());
  if (!lock) return failed(lock.error(), std::move(ready));
  if (!*lock) {
    const auto holder = service::LockFile::last_holder(paths.http_lock());
    return failed({Fault::kNotReady,
                   "efimd-http runs already (pid " + std::to_string(holder.value_or(0)) + ")",
                   "end that one first"},
                  std::move(ready));
  }
  Server::Settings settings;
  settings.port = options.port.value_or(config.http.port);
  if (config.http.require_token) {
    auto token = token_in(paths.http_token_file().string());
    if (!token) return failed(token.error(), std::move(ready));
    settings.token = std::move(*token);
  }
  settings.defaults = {config.completion.tokens_max, config.completion.temperature,
                       std::chrono::duration_cast<std::chrono::seconds>(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count()};
  settings.connect = [&](service::Deadline deadline) {
    return service::connect_or_spawn(paths, *plan, deadline);
  };
  settings.log = say;
  Server server(std::move(settings));
  const auto port = server.listen();
  if (!port) return failed(port.error(), std::move(ready));
  say("listens on 127.0.0.1:" + std::to_string(*port) +
      (config.http.require_token ? ", token in " + paths.http_token_file().string()
                                 : ", without a token: every user of this machine may use it"));
  service::report_ready(std::move(ready), {});
  server.run();
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{"Serves llama-server's, OpenAI's and Ollama's completion requests on loopback.",
               "efimd-http"};
  Options options;
  app.set_version_flag("--version", std::string("efimd-http ") + service::version());
  app.add_option("--port", options.port, "Port on 127.0.0.1 and ::1; 0: any")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--print-token", options.print_token, "Prints the token that clients must send");
  app.add_option("--ready-fd", options.ready_fd,
                 "Descriptor that is told once it listens (for who starts it)")
      ->check(CLI::Range(3, 1 << 20));
  app.footer("'efimd http' starts it; docs/clients.md has each client's configuration.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto paths = service::find_paths();
  if (!paths) return failed(paths.error());
  if (!options.print_token) return serve(*paths, options);
  const auto token = token_in(paths->http_token_file().string());
  if (!token) return failed(token.error());
  std::printf("%s\n", token->c_str());
  return 0;
}

}  // namespace

}  // namespace efimd::http

int main(int argc, char** argv) {
  return efimd::service::run_program("efimd-http", efimd::http::run, argc, argv);
}
