#include "daemon/cli/texts.h"

#include <catch2/catch.hpp>

using namespace efimd::service;

namespace {

/// A program with a hyphen in its name and one command, `two words`, below `two`.
ProgramHelp program() {
  ProgramHelp help{"a-b", "what it does", {}};
  help.helps.push_back({"", "It does.", "Example:\n  a-b two words", {}, {"two"}});
  help.helps.push_back({"two", "Of two", "", {}, {"words"}});
  help.helps.push_back({"two words", "Says 'two'", "", {}, {}});
  help.helps.back().options.push_back({"--many", "INT", "How many", false});
  help.helps.back().options.push_back({"FILE", "TEXT", "A file", true});
  return help;
}

}  // namespace

TEST_CASE("a man page names its program, each command, and files where there are some") {
  ProgramHelp told = program();
  const std::string page = man_page(told);
  CHECK(page.starts_with(".TH A\\-B 1 "));
  CHECK(page.find(".SH NAME\na\\-b \\- what it does\n") != std::string::npos);
  CHECK(page.find(".SS a\\-b two words\nSays 'two'.\n") != std::string::npos);
  CHECK(page.find(".B \\-\\-many INT\nHow many.\n") != std::string::npos);
  CHECK(page.find(".SS a\\-b two\n") == std::string::npos);
  CHECK(page.find(".SH FILES") == std::string::npos);
  told.files = ".TP\n.I here\n";
  CHECK(man_page(told).ends_with(".SH FILES\n.TP\n.I here\n"));
}

TEST_CASE("what shells complete is of the program, by functions of names that shells allow") {
  const std::string bash = bash_completion(program());
  CHECK(bash.find("\n_a_b() {\n") != std::string::npos);
  CHECK(bash.ends_with("complete -o filenames -F _a_b a-b\n"));
  CHECK(bash.find("'two words') words='--many' files=yes ;;") != std::string::npos);
  const std::string zsh = zsh_completion(program());
  CHECK(zsh.starts_with("#compdef a-b\n_a_b() {\n"));
  CHECK(zsh.ends_with("_a_b \"$@\"\n"));
  const std::string fish = fish_completion(program());
  CHECK(fish.find("\nfunction __a_b_after ") != std::string::npos);
  CHECK(fish.find("complete -c a-b -n '__a_b_after two' -a words\n") != std::string::npos);
}

TEST_CASE("efimd's own texts tell of its commands, and no other kind is made") {
  CHECK(help_text(efimd_help(), "man").find(".SS efimd cache list\n") != std::string::npos);
  CHECK(help_text(efimd_help(), "bash").find("complete -o filenames -F _efimd efimd\n") !=
        std::string::npos);
  CHECK(help_text(efimd_help(), "fish").starts_with("# fish completion for efimd\n"));
  CHECK(help_text(efimd_help(), "zsh").starts_with("#compdef efimd\n"));
  CHECK(help_text(efimd_help(), "tcsh").empty());
}
