#include "daemon/service/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

#include "lsp/protocol.h"

namespace efimd::service {

namespace {

std::optional<std::size_t> number_from_one(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) return std::nullopt;
  return value;
}

/// "text: what it is" in front of the options, an example behind them.
CLI::App* command(CLI::App& app, const char* name, const char* what, const char* example,
                  std::vector<std::pair<CLI::App*, CommandLine::Command>>& commands,
                  CommandLine::Command value) {
  CLI::App* sub = app.add_subcommand(name, what);
  sub->footer(std::string("Example:\n  ") + example);
  commands.emplace_back(sub, value);
  return sub;
}

void add_serve_options(CLI::App& serve, CommandLine& line) {
  serve.add_flag("--background", line.serve.background, "The log goes to its file, not to stderr");
  serve
      .add_option("--ready-fd", line.serve.ready_fd,
                  "Descriptor that is told once the socket listens (for who starts it)")
      ->check(CLI::Range(3, 1 << 20));
}

void add_complete_options(CLI::App& complete, CommandLine& line, std::string& place) {
  complete.add_option("PLACE", place, "FILE:LINE:COLUMN, from 1, the column in characters")
      ->required()
      ->type_name("FILE:LINE:COLUMN")
      ->check([](const std::string& text) {
        const auto parsed = parse_place(text);
        return parsed ? std::string() : parsed.error().message();
      });
  complete.add_option("--max-tokens", line.complete.tokens_max, "Most tokens to generate")
      ->check(CLI::Range(1, static_cast<int>(lsp::kMaxTokensMax)));
  complete.add_option("--stop", line.complete.stop, "Where to end: none, line or block")
      ->check(CLI::IsMember({"none", "line", "block"}));
  complete.add_option("--temperature", line.complete.temperature, "0 is greedy")
      ->check(CLI::Range(0.0, lsp::kTemperatureMax));
  complete.add_flag("--receipt", line.complete.receipt, "What it cost, on stderr");
  complete.add_flag("--json", line.json, "Text and receipt as JSON");
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

tl::expected<CommandLine, NothingToRun> parse_command_line(std::vector<std::string> arguments) {
  using Command = CommandLine::Command;
  CommandLine line;
  std::string place;
  std::vector<std::pair<CLI::App*, Command>> commands;
  CLI::App app("Inline code completions from a model on this machine, over LSP.", "efimd");
  app.set_version_flag("--version", "efimd " EFIMD_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Example:\n  efimd complete src/main.c:12:5\n\n"
      "Exit status: 0 good, 1 failed with a reason on stderr, 2 wrong usage.");

  command(app, "lsp", "LSP on stdio, for an editor; starts the daemon when none runs", "efimd lsp",
          commands, Command::kLsp);
  add_serve_options(
      *command(app, "serve", "The daemon in the foreground",
               "EFIMD_MODEL=~/models/coder.gguf efimd serve", commands, Command::kServe),
      line);
  command(app, "status", "What the running daemon does: model, memory, files, latencies",
          "efimd status --json", commands, Command::kStatus)
      ->add_flag("--json", line.json, "As JSON");
  add_complete_options(*command(app, "complete", "One completion, on stdout",
                                "efimd complete src/main.c:12:5 --stop line --receipt", commands,
                                Command::kComplete),
                       line, place);
  CLI::App* model = app.add_subcommand("model", "The models that are there");
  model->require_subcommand(1);
  model->footer("Example:\n  efimd model list");
  command(*model, "list", "GGUF files found, and which is used", "efimd model list --json",
          commands, Command::kModelList)
      ->add_flag("--json", line.json, "As JSON");
  CLI::App* info = command(*model, "info", "What a GGUF file is",
                           "efimd model info ~/models/coder.gguf", commands, Command::kModelInfo);
  info->add_option("FILE", line.model_file, "The model in use when none is named");
  info->add_flag("--json", line.json, "As JSON");
  command(app, "doctor", "What this machine has, what is in use, what is wrong and what to do",
          "efimd doctor", commands, Command::kDoctor)
      ->add_flag("--json", line.json, "As JSON");
  command(app, "stop", "Asks the daemon to finish, and waits for it", "efimd stop", commands,
          Command::kStop);

  try {
    std::ranges::reverse(arguments);  // as CLI11 wants a vector
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = app.exit(error, out, err) == 0;
    return tl::unexpected(asked ? NothingToRun{0, out.str()} : NothingToRun{2, err.str()});
  }
  for (const auto& [sub, value] : commands)
    if (sub->parsed()) line.command = value;
  if (line.command == Command::kComplete) line.complete.place = *parse_place(place);
  return line;
}

}  // namespace efimd::service
