#include "daemon/cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "daemon/config/version.h"
#include "lsp/protocol.h"

namespace efimd::service {

namespace {

constexpr std::string_view kBenchHint =
    "efimd has no command bench; run efimd-bench, which is installed beside it\n";

using Commands = std::vector<std::pair<CLI::App*, CommandLine::Command>>;

std::optional<std::size_t> number_from_one(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

/// "text: what it is" before the options, an example after them.
CLI::App* command(CLI::App& app, const char* name, const char* what, const char* example,
                  Commands& commands, CommandLine::Command value) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->footer(std::string("Example:\n  ") + example);
  commands.emplace_back(sub, value);
  return sub;
}

void add_serve_options(CLI::App& serve, CommandLine& line) {
  serve.add_flag("--background", line.serve.background, "The log goes to its file, not to stderr");
  serve
      .add_option("--ready-fd", line.serve.ready_fd,
                  "Descriptor that gets a line when the socket listens, for the starter")
      ->check(CLI::Range(3, 1 << 20));
}

void add_http_options(CLI::App& http, CommandLine& line) {
  auto* const port = http.add_option("--port", line.http.port, "On 127.0.0.1, instead of http.port")
                         ->check(CLI::Range(1, 65535));
  auto* const token = http.add_flag("--print-token", line.http.print_token,
                                    "Prints the token that clients must send, and ends");
  auto* const background = http.add_flag("--background", line.http.background,
                                         "Returns once it listens; its log goes to the daemon's");
  http.add_flag("--stop", line.http.stop, "Ends the one that runs")
      ->excludes(port)
      ->excludes(token)
      ->excludes(background);
}

void add_setup_options(CLI::App& setup, CommandLine::Setup& wish) {
  setup.add_flag("-y,--yes", wish.yes, "Without asking; a recommended model is loaded, too");
  setup.add_flag("--dry-run", wish.dry_run, "Only what would be done");
  setup.add_flag("--remove", wish.remove, "Undoes what it did, exactly; loaded models stay");
  setup.add_flag("--no-model", wish.no_model, "Everything but a model");
}

void add_complete_options(CLI::App& complete, CommandLine& line, std::string& place) {
  complete
      .add_option("PLACE", place, "FILE:LINE:COLUMN; both numbers from 1, the column in characters")
      ->required()
      ->type_name("FILE:LINE:COLUMN")
      ->check([](const std::string& text) {
        const auto parsed = parse_place(text);
        return parsed ? std::string() : parsed.error().message();
      });
  complete.add_option("--max-tokens", line.complete.tokens_max, "Most tokens to generate")
      ->check(CLI::Range(1, static_cast<int>(lsp::kMaxTokensMax)));
  complete.add_option("--stop", line.complete.stop, "The end of the text: none, line or block")
      ->check(CLI::IsMember({"none", "line", "block"}));
  complete.add_option("--temperature", line.complete.temperature, "0 is greedy")
      ->check(CLI::Range(0.0, lsp::kTemperatureMax))
      ->check([](const std::string& text) {
        return std::isnan(std::strtod(text.c_str(), nullptr)) ? "is no number" : std::string();
      });
  complete.add_flag("--receipt", line.complete.receipt, "The cost, on stderr");
  complete.add_flag("--json", line.json, "Text and receipt as JSON");
}

/// "cache" and its subcommands; the action of the chosen one goes into `line`.
void add_cache_commands(CLI::App& app, CommandLine& line, Commands& commands) {
  using Action = CacheRequest::Action;
  CLI::App* cache = app.add_subcommand("cache", "KV on disk");
  cache->require_subcommand(1);
  cache->footer("Example:\n  efimd cache list");
  const auto add = [&](const char* name, const char* what, const char* example, Action action) {
    CLI::App* sub = command(*cache, name, what, example, commands, CommandLine::Command::kCache);
    sub->add_flag("--json", line.json, "As JSON");
    sub->callback([&line, action] { line.cache.request.action = action; });
    return sub;
  };
  const auto add_path = [&](CLI::App* sub) {
    // An unset variable in a script names no file; it must not mean all of them.
    return sub->add_option("PATH", line.cache.path, "A file, or a folder for all files below it")
        ->check([](const std::string& path) {
          return path.empty() ? "is empty; name a file or a folder" : std::string();
        });
  };
  add("list", "Lists the KV of each file and model", "efimd cache list --json", Action::kList);
  CLI::App* purge = add("purge", "Removes and overwrites the KV of a file, a model or all",
                        "efimd cache purge src/main.c", Action::kPurge);
  add_path(purge);
  purge->add_option("--model", line.cache.request.model,
                    "A model's name or the beginning of its digest, as cache list shows them");
  purge->add_flag("--all", line.cache.request.all, "Everything");
  purge->callback([&line] {
    line.cache.request.action = Action::kPurge;
    const int named = int{!line.cache.path.empty()} + int{!line.cache.request.model.empty()} +
                      int{line.cache.request.all};
    if (named != 1) throw CLI::ValidationError("purge", "give one of PATH, --model and --all");
  });
  add_path(add("pin", "Keeps a file's KV even over the budget", "efimd cache pin src/main.c",
               Action::kPin))
      ->required();
  add_path(add("unpin", "Removes the pin", "efimd cache unpin src/main.c", Action::kUnpin))
      ->required();
  add("verify", "Reads and checks everything, and removes damaged pages", "efimd cache verify",
      Action::kVerify);
  add("stats", "Sizes: kept, written, loaded and saved", "efimd cache stats", Action::kStats);
}

/// The command line's grammar, and where a parse leaves its values.
class Grammar {
 public:
  Grammar();
  tl::expected<CommandLine, NothingToRun> parse(std::vector<std::string> arguments);
  const CLI::App& app() const { return app_; }

 private:
  void add_status();
  void add_model();
  void add_model_get(CLI::App& model);
  void add_autostart();

  CommandLine line_;
  std::string place_;
  Commands commands_;
  std::vector<std::pair<CLI::App*, CommandLine::Autostart>> autostarts_;
  CLI::App app_{"Inline code completions from a model on this machine, over LSP.", "efimd"};
};

using Command = CommandLine::Command;

Grammar::Grammar() {
  app_.set_version_flag("--version", std::string("efimd ") + version());
  app_.require_subcommand(1);
  app_.footer(
      "Example:\n  efimd complete src/main.c:12:5\n\n"
      "Exit status: 0 good, 1 failed with a reason on stderr, 2 wrong usage.");
  add_setup_options(
      *command(app_, "setup", "Sets up the editors, a model and autostart; asks before each change",
               "efimd setup --dry-run", commands_, Command::kSetup),
      line_.setup);
  command(app_, "lsp", "LSP on stdio, for an editor; starts the daemon if none runs", "efimd lsp",
          commands_, Command::kLsp);
  add_serve_options(
      *command(app_, "serve", "The daemon in the foreground",
               "EFIMD_MODEL=~/models/coder.gguf efimd serve", commands_, Command::kServe),
      line_);
  add_status();
  add_complete_options(*command(app_, "complete", "One completion, on stdout",
                                "efimd complete src/main.c:12:5 --stop line --receipt", commands_,
                                Command::kComplete),
                       line_, place_);
  add_model();
  add_cache_commands(app_, line_, commands_);
  CLI::App* doctor =
      command(app_, "doctor", "Checks this machine, and says what is wrong and what to do",
              "efimd doctor", commands_, Command::kDoctor);
  doctor->add_flag("--json", line_.json, "As JSON");
  doctor->add_option("FILE", line_.doctor_file,
                     "Says of this file alone whether it is completed and kept, and why not");
  add_autostart();
  add_http_options(
      *command(app_, "http",
               "Completions over HTTP, on this machine only, for clients that speak no LSP",
               "efimd http --print-token", commands_, Command::kHttp),
      line_);
  command(app_, "stop", "Asks the daemon and efimd-http to finish, and waits for them",
          "efimd stop", commands_, Command::kStop);
}

void Grammar::add_status() {
  CLI::App* status =
      command(app_, "status", "Shows the running daemon: model, memory, files, latencies",
              "efimd status --watch", commands_, Command::kStatus);
  status->add_flag("--json", line_.json, "As JSON");
  status->add_flag("--why", line_.why, "How the last requests were planned, and the other plans");
  status->add_flag("--watch", line_.watch, "Again every second, until q or Ctrl-C");
}

void Grammar::add_model() {
  CLI::App* model = app_.add_subcommand("model", "The models on this machine, and others");
  model->require_subcommand(1);
  model->footer("Example:\n  efimd model list");
  command(*model, "list", "Lists GGUF files, and which is used", "efimd model list --json",
          commands_, Command::kModelList)
      ->add_flag("--json", line_.json, "As JSON");
  CLI::App* info = command(*model, "info", "Describes a GGUF file",
                           "efimd model info ~/models/coder.gguf", commands_, Command::kModelInfo);
  info->add_option("FILE", line_.model_file, "A GGUF file, or a listed name; else the one in use");
  info->add_flag("--json", line_.json, "As JSON");
  info->add_flag("--no-speed", line_.no_speed, "Without measuring its speed here");
  CLI::App* use = command(*model, "use", "Switches to another model, and remembers it",
                          "efimd model use qwen2.5-coder:1.5b", commands_, Command::kModelUse);
  auto* const named =
      use->add_option("MODEL", line_.model_file, "A file, or a name that efimd model list shows");
  use->add_flag("--configured", line_.model_configured,
                "Forget the choice; use config.toml's model, or the bundled one")
      ->excludes(named);
  use->add_flag("--json", line_.json, "As JSON");
  add_model_get(*model);
  command(*model, "recommend", "The best model of the catalogue for this machine, and why",
          "efimd model recommend", commands_, Command::kModelRecommend)
      ->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_model_get(CLI::App& model) {
  CLI::App* get =
      command(model, "get", "Loads a model from the hub (by the program efimd-get)",
              "efimd model get qwen2.5-coder-1.5b --use", commands_, Command::kModelGet);
  CommandLine::ModelGet& wish = line_.model_get;
  get->add_option("NAME", wish.name,
                  "A name of the catalogue, ORGANISATION/REPOSITORY[:TYPE], or an https address")
      ->required();
  get->add_flag("--use", wish.use, "Then efimd model use");
  get->add_flag("--dry-run", wish.dry_run, "Only what would be loaded: size, licence, speed");
  get->add_flag("-y,--yes", wish.yes, "Without asking");
  get->add_flag("--no-speed", wish.no_speed, "Without measuring this machine first");
  get->add_flag("--json", line_.json, "A line of JSON for each event");
}

void Grammar::add_autostart() {
  CLI::App* autostart =
      app_.add_subcommand("autostart", "Whether your service manager starts the daemon");
  autostart->require_subcommand(1);
  autostart->footer("Example:\n  efimd autostart enable");
  const auto add = [&](const char* name, const char* what, CommandLine::Autostart value) {
    CLI::App* sub =
        command(*autostart, name, what, "efimd autostart status", commands_, Command::kAutostart);
    autostarts_.emplace_back(sub, value);
  };
  add("enable", "systemd's user manager holds the socket; the first editor wakes the daemon",
      CommandLine::Autostart::kEnable);
  add("disable", "Removes the files that enable made", CommandLine::Autostart::kDisable);
  add("status", "Shows whether it is enabled", CommandLine::Autostart::kStatus);
}

/// "help cache purge" is "cache purge --help".
void say_help_last(std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.front() != "help") return;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
}

tl::expected<CommandLine, NothingToRun> Grammar::parse(std::vector<std::string> arguments) {
  say_help_last(arguments);
  if (!arguments.empty() && arguments.front() == "bench")
    return tl::unexpected(NothingToRun{2, std::string(kBenchHint)});
  if (auto unknown = unknown_word(app_, arguments)) return tl::unexpected(*unknown);
  try {
    std::ranges::reverse(arguments);  // as CLI11 wants a vector
    app_.parse(arguments);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = app_.exit(error, out, err) == 0;
    return tl::unexpected(asked ? NothingToRun{0, out.str()} : NothingToRun{2, err.str()});
  }
  for (const auto& [sub, value] : commands_)
    if (sub->parsed()) line_.command = value;
  for (const auto& [sub, value] : autostarts_)
    if (sub->parsed()) line_.autostart = value;
  if (line_.command == Command::kModelUse && line_.model_file.empty() && !line_.model_configured)
    return tl::unexpected(
        NothingToRun{2, "efimd model use needs a MODEL, or --configured; see --help\n"});
  if (line_.command == Command::kComplete) line_.complete.place = *parse_place(place_);
  return line_;
}

void describe(const CLI::App& app, const std::string& name, std::vector<CommandHelp>& helps) {
  CommandHelp help{name, app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    help.options.push_back(
        {option->get_positional() ? option->get_single_name() : option->get_name(false, true),
         option->get_items_expected_max() == 0 ? "" : option->get_type_name(),
         option->get_description(), option->get_positional()});
  const auto subs = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* sub : subs) help.commands.push_back(sub->get_name());
  helps.push_back(std::move(help));
  for (const CLI::App* sub : subs)
    describe(*sub, name.empty() ? sub->get_name() : name + " " + sub->get_name(), helps);
}

}  // namespace

Result<Place> parse_place(std::string_view text) {
  const auto wrong = [&] {
    return fail(Fault::kBadInput, "\"" + std::string(text) + "\" is not FILE:LINE:COLUMN",
                "line and column are numbers from 1, as in src/main.c:12:5");
  };
  const std::size_t second = text.rfind(':');
  if (second == std::string_view::npos || second == 0) return wrong();
  const std::size_t first = text.rfind(':', second - 1);
  if (first == std::string_view::npos || first == 0) return wrong();
  const auto line = number_from_one(text.substr(first + 1, second - first - 1));
  const auto column = number_from_one(text.substr(second + 1));
  if (!line || !column) return wrong();
  return Place{std::string(text.substr(0, first)), *line, *column};
}

std::optional<NothingToRun> unknown_word(const CLI::App& program,
                                         const std::vector<std::string>& words) {
  const auto named = [&](const char* kind, const std::string& word) {
    return NothingToRun{2, program.get_name() + ": there is no " + kind + " \"" + word +
                               "\" here; see " + program.get_name() + " --help\n"};
  };
  const CLI::App* app = &program;
  for (const std::string& word : words) {
    const auto subs = app->get_subcommands([](const CLI::App*) { return true; });
    if (subs.empty()) break;
    if (word.starts_with('-') && app->get_option_no_throw(word) != nullptr) break;
    if (word.starts_with('-')) return named("option", word);
    const auto sub = std::ranges::find(subs, word, &CLI::App::get_name);
    if (sub == subs.end()) return named("command", word);
    app = *sub;
  }
  return std::nullopt;
}

std::vector<CommandHelp> command_help() { return command_help(Grammar().app()); }

std::vector<CommandHelp> command_help(const CLI::App& program) {
  std::vector<CommandHelp> helps;
  describe(program, "", helps);
  return helps;
}

tl::expected<CommandLine, NothingToRun> parse_command_line(std::vector<std::string> arguments) {
  return Grammar().parse(std::move(arguments));
}

}  // namespace efimd::service
