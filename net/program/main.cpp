// efimd-http: serves llama-server's, OpenAI's and Ollama's completion requests on loopback, from the
// user's daemon (`efimd http` starts it). It also asks a server elsewhere for that daemon, which has
// no code that connects anywhere, if engine.url is set.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "daemon/config/config.h"
#include "daemon/config/local_socket.h"
#include "daemon/config/program.h"
#include "daemon/config/this_system.h"
#include "daemon/config/version.h"
#include "net/http/guard.h"
#include "net/program/doors.h"
#include "net/program/keep_serving.h"

namespace efimd::net {

namespace {

constexpr char kName[] = "efimd-http";

struct Options {
  Doors::Options doors;
  int ready_fd = -1;
  bool print_token = false;
  bool if_wanted = false;
};

int failed(const Error& error) {
  std::fprintf(stderr, "%s: %s\n", kName, error.message().c_str());
  return 1;
}

/// The serving process becomes the program. Its locks and sockets close with that.
int start_again(const Doors::Options& options) {
  const auto own = service::own_executable();
  if (!own) return failed({Fault::kIo, "it cannot start again", ""});
  std::vector<std::string> command = {own->string()};
  if (options.engine_only) command.emplace_back("--engine-only");
  if (options.port) command.insert(command.end(), {"--port", std::to_string(*options.port)});
  std::vector<char*> argv;
  for (std::string& argument : command) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(argv.front(), argv.data());
  return failed({Fault::kIo, "it cannot start again", ""});
}

int serve(const service::Paths& paths, const Options& options) {
  Doors doors(paths, options.doors, service::UniqueFd(options.ready_fd));
  const Ended ended = keep_serving(kName, {[&doors] {
                                             auto serve = doors.prepare();
                                             if (!serve) doors.report(serve.error());
                                             return serve;
                                           },
                                           [&doors] { return doors.has_changed(); }});
  if (ended.status == kStarterGone) return start_again(options.doors);
  if (ended.starter) doors.close(ended.asked);
  return ended.status;
}

int print_token(const service::Paths& paths) {
  const std::filesystem::path file = paths.http_token_file();
  std::error_code error;
  const bool was_here = std::filesystem::exists(file, error);
  const auto token = http::token_in(file.string());
  if (!token) return failed(token.error());
  std::printf("%s\n", token->c_str());
  // One that runs takes the token before this one until it looks.
  if (was_here || !service::LockFile::is_held(paths.http_lock())) return 0;
  const auto pid = service::LockFile::last_holder(paths.http_lock());
  if (pid && *pid > 1) ::kill(*pid, SIGUSR1);
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app{
      "Serves llama-server's, OpenAI's and Ollama's completion requests on loopback, and asks the "
      "server that engine.url names for the user's daemon.",
      kName};
  Options options;
  app.set_version_flag("--version", std::string(kName) + " " + service::version());
  app.add_option("--port", options.doors.port, "Port on 127.0.0.1 and ::1; 0: any")
      ->check(CLI::Range(0, 65535));
  app.add_flag("--print-token", options.print_token, "Prints the token that clients must send");
  app.add_flag("--engine-only", options.doors.engine_only,
               "Asks the server of engine.url for the daemon, and serves nothing by HTTP");
  app.add_flag("--if-wanted", options.if_wanted,
               "Serves what the configuration wants, and nothing if it wants nothing (for service "
               "managers)");
  app.add_option("--ready-fd", options.ready_fd,
                 "Descriptor that is told once it listens (for who starts it)")
      ->check(CLI::Range(3, 1 << 20));
  app.footer(
      "'efimd http' and the daemon start it. docs/clients.md has each client's configuration, "
      "docs/remote.md says what leaves the machine.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const auto paths = service::find_paths();
  if (!paths) return failed(paths.error());
  if (options.if_wanted) {
    const service::Config config = service::load_config(paths->config_file);
    if (!config.http.enable && config.remote.url.empty()) return 0;
    options.doors.engine_only = !config.http.enable;
  }
  return options.print_token ? print_token(*paths) : serve(*paths, options);
}

}  // namespace

}  // namespace efimd::net

int main(int argc, char** argv) {
  return efimd::service::run_program("efimd-http", efimd::net::run, argc, argv);
}
