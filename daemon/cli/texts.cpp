#include "daemon/cli/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "daemon/config/version.h"

namespace efimd::service {

namespace {

/// Text for troff: no line is a macro, no character an escape.
std::string troff(std::string_view text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    if (c == '\\')
      escaped += "\\e";
    else if (c == '-')
      escaped += "\\-";
    else
      escaped += c;
    line_begins = c == '\n';
  }
  return escaped;
}

std::string single_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

/// A footer: "Example:" with its indented lines, then paragraphs.
std::string man_footer(std::string_view footer) {
  constexpr std::string_view kExample = "Example:\n  ";
  std::string text;
  if (footer.starts_with(kExample)) {
    footer.remove_prefix(kExample.size());
    const std::size_t end = footer.find('\n');
    text += fmt::format(".PP\n.RS\n.B {}\n.RE\n", troff(footer.substr(0, end)));
    footer = end == std::string_view::npos ? "" : footer.substr(end);
  }
  while (footer.starts_with('\n')) footer.remove_prefix(1);
  return footer.empty() ? text : text + fmt::format(".PP\n{}\n", troff(footer));
}

std::string man_options(const CommandHelp& help) {
  std::string text;
  for (const auto& option : help.options) {
    if (!help.name.empty() && option.names == "-h,--help") continue;  // said once, of efimd itself
    const std::string value = option.value.empty() || option.positional ? "" : " " + option.value;
    text += fmt::format(".TP\n.B {}\n{}.\n", troff(option.names + value), troff(option.what));
  }
  return text;
}

/// An option's own names: "-h,--help" has two.
std::vector<std::string> names_of(const CommandHelp::Option& option) {
  std::vector<std::string> flags;
  std::string_view names = option.names;
  while (!option.positional && !names.empty()) {
    const std::size_t comma = names.find(',');
    flags.emplace_back(names.substr(0, comma));
    names = comma == std::string_view::npos ? "" : names.substr(comma + 1);
  }
  return flags;
}

/// "none line block" of "TEXT:{none,line,block}".
std::string choices_of(const CommandHelp::Option& option) {
  const std::size_t open = option.value.find('{'), close = option.value.find('}');
  if (open == std::string::npos || close == std::string::npos) return {};
  std::string choices = option.value.substr(open + 1, close - open - 1);
  std::ranges::replace(choices, ',', ' ');
  return choices;
}

/// Whether its value may be a file, as far as its type tells.
bool may_name_file(const CommandHelp::Option& option) {
  return option.value.starts_with("TEXT") && choices_of(option).empty();
}

bool takes_file(const CommandHelp& help) {
  for (const auto& option : help.options)
    if (option.positional) return true;
  return false;
}

/// The words that may follow a command.
std::string words_behind(const CommandHelp& help) {
  std::vector<std::string> words = help.commands;
  for (const auto& option : help.options)
    for (const std::string& flag : names_of(option)) words.push_back(flag);
  return fmt::format("{}", fmt::join(words, " "));
}

/// All commands in quotes. A word that makes none of them is an option, its value or a file.
std::string known_commands(const ProgramHelp& program, std::string_view between) {
  std::vector<std::string> known;
  for (const CommandHelp& help : program.helps)
    if (!help.name.empty()) known.push_back(single_quoted(help.name));
  return fmt::format("{}", fmt::join(known, between));
}

/// What `act` says of each option with a value, behind "'COMMAND OPTION')": bash and zsh look there.
template <class Act>
std::string value_cases(const ProgramHelp& program, Act act) {
  std::string cases;
  for (const CommandHelp& help : program.helps)
    for (const auto& option : help.options)
      for (const std::string& flag : names_of(option))
        if (!option.value.empty())
          cases +=
              fmt::format("    {}) {} ;;\n", single_quoted(help.name + " " + flag), act(option));
  return cases;
}

/// " -l stop -d WHAT -x -a 'none line block'": one name of an option, and what its value may be.
std::string fish_option(const std::string& flag, const CommandHelp::Option& option) {
  const bool is_long = flag.starts_with("--");
  std::string text = fmt::format(" -{} {} -d {}", is_long ? 'l' : 's', flag.substr(is_long ? 2 : 1),
                                 single_quoted(option.what));
  if (!option.value.empty()) text += may_name_file(option) ? " -r" : " -x";
  if (const std::string choices = choices_of(option); !choices.empty())
    text += " -a " + single_quoted(choices);
  return text + "\n";
}

/// The program's name as shells want it in names of functions.
std::string identifier(const ProgramHelp& program) {
  std::string name = program.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string upper_case(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

}  // namespace

ProgramHelp efimd_help() {
  return {"efimd", "inline code completions from a model on this machine", command_help(),
          ".TP\n.I $XDG_CONFIG_HOME/efimd/config.toml\nThe configuration; none is needed.\n"
          ".TP\n.I $XDG_STATE_HOME/efimd/efimd.log\nThe daemon's log.\n"
          ".TP\n.I $XDG_RUNTIME_DIR/efimd/\nSocket and locks.\n"};
}

std::string man_page(const ProgramHelp& program) {
  const CommandHelp& whole = program.helps.front();
  const std::string name = troff(program.name);
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n"
      ".SH SYNOPSIS\n.B {}\n.I COMMAND\n[\\fIOPTION\\fR]...\n.SH OPTIONS\n{}.SH COMMANDS\n",
      troff(upper_case(program.name)), name, version(), name, program.what, name,
      man_options(whole));
  for (const CommandHelp& help : program.helps) {
    if (help.name.empty() || !help.commands.empty()) continue;  // those below it are told
    text += fmt::format(".SS {} {}\n{}.\n{}{}", name, troff(help.name), troff(help.what),
                        man_options(help), man_footer(help.footer));
  }
  text += ".SH NOTES\n" + man_footer(whole.footer);
  return program.files.empty() ? text : text + ".SH FILES\n" + program.files;
}

std::string bash_completion(const ProgramHelp& program) {
  std::string cases;
  for (const CommandHelp& help : program.helps)
    cases += fmt::format("    {}) words={} files={} ;;\n", single_quoted(help.name),
                         single_quoted(words_behind(help)), takes_file(help) ? "yes" : "''");
  const std::string values = value_cases(program, [](const CommandHelp::Option& option) {
    return fmt::format("words={} files={}", single_quoted(choices_of(option)),
                       may_name_file(option) ? "yes" : "''");
  });
  return fmt::format(R"(# bash completion for {0}
_{1}() {{
  local command='' word words files current=${{COMP_WORDS[COMP_CWORD]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case ${{command:+$command }}$word in
    {2}) command+=${{command:+ }}$word ;;
    esac
  done
  case $command in
{3}  esac
  case "$command ${{COMP_WORDS[COMP_CWORD-1]}}" in
{4}  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  if [[ -n $files && $current != -* ]]; then
    mapfile -t -O "${{#COMPREPLY[@]}}" COMPREPLY < <(compgen -f -- "$current")
  fi
}}
complete -o filenames -F _{1} {0}
)",
                     program.name, identifier(program), known_commands(program, "|"), cases,
                     values);
}

std::string zsh_completion(const ProgramHelp& program) {
  std::string cases;
  for (const CommandHelp& help : program.helps)
    cases += fmt::format("    {}) compadd -- {}{} ;;\n", single_quoted(help.name),
                         words_behind(help), takes_file(help) ? "; _files" : "");
  const std::string values = value_cases(program, [](const CommandHelp::Option& option) {
    const std::string choices = choices_of(option);
    return (choices.empty() ? std::string(may_name_file(option) ? "_files; " : "")
                            : "compadd -- " + choices + "; ") +
           "return";
  });
  return fmt::format(R"(#compdef {0}
_{1}() {{
  local command='' word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    case ${{command:+$command }}$word in
    {2}) command+="${{command:+ }}$word" ;;
    esac
  done
  case "$command ${{words[CURRENT-1]}}" in
{4}  esac
  case $command in
{3}  esac
}}
_{1} "$@"
)",
                     program.name, identifier(program), known_commands(program, "|"), cases,
                     values);
}

std::string fish_completion(const ProgramHelp& program) {
  const std::string after = fmt::format("__{}_after", identifier(program));
  std::string text = fmt::format(
      "# fish completion for {}\n"
      "function {} --description 'Whether the command line comes after these words'\n",
      program.name, after);
  text += fmt::format(
      "  set -l known {}\n"
      "  set -l command\n"
      "  for word in (commandline -opc)[2..]\n"
      "    set -l next (string join ' ' -- $command $word)\n"
      "    contains -- $next $known; and set command $next\n"
      "  end\n"
      "  test \"$command\" = \"$argv\"\n"
      "end\n",
      known_commands(program, " "));
  for (const CommandHelp& help : program.helps) {
    const std::string here =
        fmt::format("complete -c {} -n {}", program.name, single_quoted(after + " " + help.name));
    if (!takes_file(help)) text += here + " -f\n";
    for (const std::string& command : help.commands)
      text += fmt::format("{} -a {}\n", here, command);
    for (const auto& option : help.options)
      for (const std::string& flag : names_of(option)) text += here + fish_option(flag, option);
  }
  return text;
}

std::string help_text(const ProgramHelp& program, std::string_view kind) {
  if (kind == "man") return man_page(program);
  if (kind == "bash") return bash_completion(program);
  if (kind == "zsh") return zsh_completion(program);
  if (kind == "fish") return fish_completion(program);
  return {};
}

}  // namespace efimd::service
