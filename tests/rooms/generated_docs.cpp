#include "tests/rooms/generated_docs.h"

#include <fmt/format.h>

#include <vector>

#include "daemon/cli/options.h"
#include "daemon/config/config_keys.h"
#include "daemon/server/receipt.h"

namespace efimd::docs {

namespace {

using service::CommandHelp;

/// A bar inside a cell would end it.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? std::string("\\|") : std::string(1, c);
  return escaped;
}

/// "INT:INT in [1 - 4096]" says its type twice.
std::string_view value_of(const CommandHelp::Option& option) {
  const std::string_view value = option.value;
  for (const std::string_view type : {"INT:", "UINT:", "FLOAT:", "TEXT:"})
    if (value.starts_with(type)) return value.substr(type.size());
  return value;
}

std::string usage(const CommandHelp& help) {
  std::string line = "efimd " + help.name;
  for (const auto& option : help.options)
    if (option.positional) line += " " + option.names;
  return line;
}

std::string table_of_commands(std::span<const CommandHelp> helps) {
  std::string table = "| command | does |\n| --- | --- |\n";
  for (const CommandHelp& help : helps)
    if (!help.name.empty() && help.commands.empty())
      table += fmt::format("| `{}` | {} |\n", usage(help), cell(help.what));
  return table;
}

std::string table_of_options(const CommandHelp& help) {
  std::string rows;
  for (const auto& option : help.options)
    if (option.names != "-h,--help")
      rows += fmt::format("| `{}` | {} | {} |\n", option.names, cell(value_of(option)),
                          cell(option.what));
  if (rows.empty()) return "";
  return fmt::format("\n### efimd {}\n\n| option | value | meaning |\n| --- | --- | --- |\n{}",
                     help.name, rows);
}

std::string commands_text() {
  const std::vector<CommandHelp> helps = service::command_help();
  std::string text = table_of_commands(helps);
  for (const CommandHelp& help : helps)
    if (!help.name.empty()) text += table_of_options(help);
  return text;
}

constexpr GeneratedPart kParts[] = {
    {"configuration.md", "configuration", service::config_table},
    {"commands.md", "commands", commands_text},
    {"protocol.md", "receipt", service::receipt_table},
    {"protocol.md", "source", service::source_table},
};

}  // namespace

std::span<const GeneratedPart> generated_parts() { return kParts; }

Result<std::string> renewed(std::string_view page, const GeneratedPart& part) {
  const std::string first = fmt::format("<!-- made by renew_docs: {} -->\n", part.name);
  constexpr std::string_view kLast = "<!-- end -->\n";
  const std::size_t mark = page.find(first);
  const std::size_t begin = mark == std::string_view::npos ? mark : mark + first.size();
  const std::size_t end = begin == std::string_view::npos ? begin : page.find(kLast, begin);
  if (end == std::string_view::npos)
    return fail(Fault::kBadInput, fmt::format("docs/{} has no part {}", part.file, part.name),
                "put its two lines back: " + first + std::string(kLast));
  return std::string(page.substr(0, begin)) + part.text() + std::string(page.substr(end));
}

}  // namespace efimd::docs
