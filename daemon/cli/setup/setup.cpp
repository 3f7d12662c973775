#include "daemon/cli/setup/setup.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <optional>
#include <string>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/setup/machine_steps.h"
#include "daemon/cli/setup/step.h"
#include "daemon/config/printable.h"
#include "daemon/config/version.h"
#include "daemon/models/chosen_model.h"

namespace efimd::service {

namespace {

/// Text of other programs and files is never taken for the terminal's commands.
void say(const std::string& text) {
  fmt::print("{}", printable(text));
  std::fflush(stdout);
}

std::string indented(const std::string& lines) {
  std::string text;
  std::size_t begin = 0;
  while (begin < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    text += "    | " + lines.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return text;
}

/// Return is yes. The end of the input is no.
bool wants(const char* question) {
  say(fmt::format("  {} [Y/n] ", question));
  std::string answer;
  if (!std::getline(std::cin, answer)) {
    say("\n");
    return false;
  }
  return answer.empty() || answer.front() == 'y' || answer.front() == 'Y';
}

/// Goes through the steps, and counts.
class Run {
 public:
  explicit Run(const CommandLine::Setup& options) : options_(options) {}

  void take(const Step& step) {
    if (step.state == Step::State::kDone) {
      say(fmt::format("{}: {}\n", step.subject, step.what));
      return;
    }
    if (step.state == Step::State::kByHand) {
      say(fmt::format("{}: {}\n{}", step.subject, step.what, indented(step.lines)));
      return;
    }
    say(fmt::format("{}: {}{}\n{}", step.subject, options_.dry_run ? "would " : "", step.what,
                    indented(step.lines)));
    if (options_.dry_run) {
      ++offered_;
      return;
    }
    if (!options_.yes && !wants("Do it?")) {
      say("  left as it is\n");
      return;
    }
    if (const auto done = step.apply(); !done) {
      ++failed_;
      failed(done.error());
      return;
    }
    ++done_;
    say(fmt::format("  done{}\n", step.after.empty() ? "" : "; " + step.after));
  }

  int end() const {
    if (failed_ > 0)
      say(fmt::format("\n{} of the steps failed; see above.\n", failed_));
    else if (options_.dry_run)
      say(fmt::format("\nNothing was changed; {} to do.\n", offered_));
    else if (done_ == 0)
      say("\nNothing was changed.\n");
    else if (options_.remove)
      say("\nRemoved. Models that were loaded stay; see efimd model list.\n");
    else
      say("\nOpen your editor and type. efimd doctor says what is wrong if nothing appears.\n");
    return failed_ > 0 ? 1 : 0;
  }

 private:
  const CommandLine::Setup& options_;
  int done_ = 0, failed_ = 0, offered_ = 0;
};

/// The machine is measured only where there is a model to choose.
Step model_step(const Config& config, const SetupPlaces& places) {
  if (auto configured = configured_model_step(config)) return std::move(*configured);
  say("measuring this machine ...\n");
  MachineLook look = look_at_machine(config, places);
  say(look.text);
  return std::move(look.model);
}

}  // namespace

int run_setup(const Paths& paths, const CommandLine::Setup& options) {
  const auto places = find_setup_places();
  if (!places) return failed(places.error());
  if (!options.yes && !options.dry_run && ::isatty(STDIN_FILENO) == 0)
    return failed({Fault::kBadInput, "efimd setup asks before each change, and here is no terminal",
                   "run it with --yes, or with --dry-run"});
  const Direction direction = options.remove ? Direction::kRemove : Direction::kAdd;
  say(fmt::format("efimd {}, {}\n", version(), places->program.string()));
  Run run(options);
  std::optional<Step> model;
  if (!options.remove && !options.no_model) model = model_step(config_in_force(paths), *places);
  say("\n");
  for (const auto& steps :
       {vscode_steps(*places, direction), neovim_steps(*places, direction),
        emacs_steps(*places, direction), http_client_steps(*places, paths.config_file, direction)})
    for (const Step& step : steps) run.take(step);
  if (model) run.take(*model);
  run.take(autostart_step(paths, direction));
  return run.end();
}

}  // namespace efimd::service
