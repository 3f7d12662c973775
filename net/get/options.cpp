#include "net/get/options.h"

#include "daemon/config/version.h"

namespace efimd::get {

void add_options(CLI::App& program, Options& options) {
  program.set_version_flag("--version", std::string("efimd-get ") + service::version());
  program
      .add_option("NAME", options.name,
                  "A name of the catalogue, ORGANISATION/REPOSITORY[:TYPE], or an https address")
      ->required();
  program.add_flag("--use", options.use, "Then efimd model use");
  program.add_flag("--dry-run", options.dry_run, "Only what would be loaded: size, licence, speed");
  program.add_flag("-y,--yes", options.yes, "Without asking");
  program.add_flag("--no-speed", options.no_speed, "Without measuring this machine first");
  program.add_flag("--json", options.json, "A line of JSON for each event");
  program.footer(
      "Example:\n  efimd-get qwen2.5-coder-1.5b\n\n"
      "Exit status: 0 good, 1 failed with a reason on stderr, 2 wrong usage.");
}

}  // namespace efimd::get
