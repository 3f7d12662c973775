// Loads a model from a hub. A program of its own, because efimd has no code that connects anywhere.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <exception>
#include <string>

#include "daemon/config/program.h"
#include "daemon/config/this_system.h"
#include "net/get/get.h"
#include "net/get/transport.h"

namespace efimd::get {

namespace {

constexpr int kInterrupted = 130;  // as shells say SIGINT

void on_signal(int) { interrupted = true; }

/// `efimd model use PATH`, in place of this process.
int use(const Got& got, Report& report) {
  const auto own = service::own_executable();
  if (!own) return report.failed(own.error());
  const std::string efimd = (own->parent_path() / "efimd").string();
  const std::string path = got.path.string();
  const char* const json = report.is_json() ? "--json" : nullptr;
  ::execl(efimd.c_str(), "efimd", "model", "use", path.c_str(), json, nullptr);
  return report.failed(
      {Fault::kNotFound, efimd + ": " + std::strerror(errno), "efimd model use " + path});
}

int run(int argc, char** argv) {
  Options options;
  CLI::App program("Loads a model into the hub's cache on this machine.", "efimd-get");
  add_options(program, options);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  }
  Report report(options.json ? Report::Form::kJson : Report::Form::kText);
  const auto got = get(options, report);
  if (!got) {
    report.failed(got.error());
    return got.error().fault == Fault::kStopped && interrupted ? kInterrupted : 1;
  }
  if (got->path.empty()) return 0;
  report.done(got->path.string(), got->was_here);
  return options.use ? use(*got, report) : 0;
}

}  // namespace

}  // namespace efimd::get

int main(int argc, char** argv) {
  using efimd::get::on_signal;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a limit on files is an error of the write
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  try {
    const int code = efimd::get::run(argc, argv);
    if (!efimd::service::output_was_lost()) return code;
    efimd::get::Report(efimd::get::Report::Form::kText)
        .failed(
            {efimd::Fault::kIo, efimd::service::kOutputLost, efimd::service::kRemedyForOutputLost});
    return code == 0 ? 1 : code;
  } catch (const std::exception& error) {
    efimd::get::Report(efimd::get::Report::Form::kText)
        .failed({efimd::Fault::kIo, error.what(), ""});
    return 1;
  }
}
