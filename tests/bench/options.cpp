#include "tests/bench/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <utility>

#include "daemon/config/version.h"
#include "lsp/protocol.h"

namespace efimd::bench {

namespace {

using Command = CommandLine::Command;
using service::NothingToRun;

/// The command line's grammar, and where a parse leaves its values.
class Grammar {
 public:
  Grammar();
  tl::expected<CommandLine, NothingToRun> parse(std::vector<std::string> arguments);
  const CLI::App& app() const { return app_; }

 private:
  void add_replay();
  void add_rounds();
  void add_type();
  void add_places();
  void add_heads();
  void add_parsing();
  void add_opening();
  void add_fill();
  void add_store();
  void add_returns();
  void add_healing();
  void add_engine();
  void add_models();
  CLI::App* command(const char* name, const char* what, const char* example, Command value);

  CommandLine line_;
  std::vector<std::pair<CLI::App*, Command>> commands_;
  CLI::App app_{"Measures completions and the engine on this machine, without a daemon.",
                "efimd-bench"};
};

Grammar::Grammar() {
  app_.set_version_flag("--version", std::string("efimd-bench ") + service::version());
  app_.require_subcommand(1);
  app_.footer(
      "Example:\n  efimd-bench type src/*.cpp\n\n"
      "Exit status: 0 good, 1 failed with a reason on stderr, 2 wrong usage.");
  add_replay();
  add_rounds();
  add_type();
  add_places();
  add_heads();
  add_parsing();
  add_opening();
  add_fill();
  add_store();
  add_returns();
  add_healing();
  add_engine();
  add_models();
}

/// "text: what it is" before the options, an example after them.
CLI::App* Grammar::command(const char* name, const char* what, const char* example, Command value) {
  CLI::App* sub = app_.add_subcommand(name, what);
  sub->footer(std::string("Example:\n  ") + example);
  commands_.emplace_back(sub, value);
  return sub;
}

void Grammar::add_replay() {
  CLI::App* replay =
      command("replay", "An editing trace, with EFIM and without",
              "efimd-bench replay trace.jsonl --format fim --reuse prefix", Command::kReplay);
  replay->add_option("TRACE", line_.files, "Editing events as JSON lines")->required()->expected(1);
  replay->add_option("--format", line_.format, "Only this prompt: efim or fim")
      ->check(CLI::IsMember({"efim", "fim"}));
  replay
      ->add_option(
          "--reuse", line_.reuse,
          "Only this much reuse: all (EFIM), prefix or none; by default efim with all, fim "
          "with prefix and fim with none are run in turn")
      ->check(CLI::IsMember({"all", "prefix", "none"}));
  replay->add_option("--max-tokens", line_.tokens_max, "Tokens to generate for each answer")
      ->check(CLI::Range(1, static_cast<int>(lsp::kMaxTokensMax)))
      ->capture_default_str();
  replay->add_option("--pause-ms", line_.pause_ms, "Pause before each event")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  replay->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_rounds() {
  CLI::App* rounds = command("rounds", "The EFIM paper's workload: users who type in rounds",
                             "efimd-bench rounds --users 4 src/*.cpp", Command::kRounds);
  rounds->add_option("FILES", line_.files, "Source files to make prompts of")->required();
  rounds->add_option("--users", line_.users, "Users who ask at the same time")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  rounds->add_option("--rounds", line_.rounds, "Requests of each, text typed between them")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  rounds
      ->add_option("--prompt-tokens", line_.prompt_tokens,
                   "Tokens of a first prompt, as far as the model's window allows")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  rounds->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_type() {
  CLI::App* type = command("type", "What a person would feel who types these files",
                           "efimd-bench type src/*.cpp --lines 5", Command::kType);
  type->add_option("FILES", line_.files, "Source files; a part of each is typed again")->required();
  type->add_option("--lines", line_.lines, "Lines to type in each file")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  type->add_flag("--new", line_.new_files,
                 "Type the files from their beginning: nothing of them is there");
  type->add_option("--speed", line_.speed, "How many times faster than a person")
      ->check(CLI::Range(0.1, 1000.0))
      ->capture_default_str();
  type->add_option("--seed", line_.seed, "Of the places and the rhythm")->capture_default_str();
  type->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_places() {
  CLI::App* places =
      command("places", "What is suggested where a line was taken away, with recall and without",
              "efimd-bench places ~/src/fmt --count 70", Command::kPlaces);
  places->add_option("PROJECTS", line_.files, "Folders with source files")->required();
  places->add_option("--count", line_.places.count, "Cursors of each kind in each project")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  places->add_option("--seed", line_.places.seed, "Another draw of cursors")->capture_default_str();
  places->add_flag("--above", line_.places.above,
                   "Give only the text above the cursor, as in a file that is being written");
  places->add_flag("--alone", line_.places.alone, "Measure without recall only");
  places->add_option("--dump", line_.places.dump,
                     "Write what training/fit_recall.py --judged reads to this file");
  places->add_flag("--drafts", line_.places.drafts,
                   "Measure the steps and milliseconds that drafts spare, at the same cursors");
  places->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_heads() {
  CLI::App* heads =
      command("heads", "What the declarations of other files are worth in front of a prompt",
              "efimd-bench heads ~/src/fmt --count 100", Command::kHeads);
  heads->add_option("PROJECTS", line_.files, "Folders with source files")->required();
  heads->add_option("--count", line_.places.count, "Cursors of each kind in each project")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  heads->add_option("--seed", line_.places.seed, "Another draw of cursors")->capture_default_str();
  heads->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_parsing() {
  CLI::App* parsing = command("parsing", "What parsing takes of a processor after one edit",
                              "efimd-bench parsing ~/src/fmt --count 100", Command::kParsing);
  parsing->add_option("PROJECTS", line_.files, "Folders with source files")->required();
  parsing->add_option("--count", line_.places.count, "Cursors of each kind in each project")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  parsing->add_option("--seed", line_.places.seed, "Another draw of cursors")
      ->capture_default_str();
}

void Grammar::add_opening() {
  CLI::App* opening = command("opening", "Whether keys are answered later while a project is read",
                              "efimd-bench opening ~/src/fmt", Command::kOpening);
  opening->add_option("PROJECT", line_.files, "A folder with source files")
      ->required()
      ->expected(1);
  opening->add_option("--rounds", line_.rounds, "Places; at each the same keys are typed in turn")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  opening->add_option("--keys", line_.keys, "Keys of a round: before, meanwhile and after")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  opening->add_option("--pause-ms", line_.key_pause_ms, "From an answer to the next key")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  opening->add_option("--seed", line_.seed, "Of the place that is typed at")->capture_default_str();
  opening->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_fill() {
  CLI::App* fill = command(
      "fill", "What the model writes at cursors, as JSON lines",
      "efimd-bench fill cursors.jsonl --form psm,efim --max-tokens 64 --stop none", Command::kFill);
  fill->add_option("CURSORS", line_.files,
                   "JSON lines: {\"before\":T,\"increment\":T,\"after\":T,\"path\":T}")
      ->required()
      ->expected(1);
  fill->add_option(
          "--form", line_.forms,
          "Where the increment stands: psm (before the suffix), efim (after the "
          "middle token), healed (there, with its last tokens healed); several with commas")
      ->check(CLI::IsMember({"psm", "efim", "healed"}))
      ->delimiter(',')
      ->capture_default_str();
  fill->add_option("--max-tokens", line_.tokens_max, "Most tokens to generate")
      ->check(CLI::Range(1, static_cast<int>(lsp::kMaxTokensMax)))
      ->capture_default_str();
  fill->add_option("--stop", line_.stop, "The end of the text: none, line or block")
      ->check(CLI::IsMember({"none", "line", "block"}))
      ->capture_default_str();
}

void Grammar::add_store() {
  CLI::App* store = command("store", "What keeping KV on disk is worth, and what it costs",
                            "efimd-bench store src/main.c", Command::kStore);
  store->add_option("FILE", line_.files, "A source file; 3,000 tokens are about 10 kB")
      ->required()
      ->expected(1);
  store->add_option("--prompt-tokens", line_.store_prompt_tokens, "Most tokens of a prompt")
      ->check(CLI::Range(256, 1 << 20))
      ->capture_default_str();
  store->add_option("--keys", line_.keys, "Keys typed with a store and without")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  store->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_returns() {
  CLI::App* returns = command(
      "returns", "What is still there when a user returns to a file, by the order of eviction",
      "efimd-bench returns tests/bench/traces/*.csv", Command::kReturns);
  returns->add_option("TRACES", line_.files, "Visits of files, as lines of seconds,file,tokens,...")
      ->required();
  returns
      ->add_option("--room", line_.room_tokens, "Tokens of KV that are kept; several with commas")
      ->check(CLI::Range(1024, 1 << 26))
      ->delimiter(',')
      ->capture_default_str();
  returns->add_option("--window", line_.window_tokens, "Most tokens of a file")
      ->check(CLI::Range(32, 1 << 20))
      ->capture_default_str();
  returns
      ->add_option("--looks", line_.looks,
                   "After so many visits, as many files that are looked into once; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  returns->add_flag("--json", line_.json, "As JSON");
}

void Grammar::add_healing() {
  CLI::App* healing =
      command("healing", "What healing does at random cursors of real code",
              "efimd-bench healing models/efim-boot.gguf src/*.cpp", Command::kHealing);
  healing->add_option("MODEL", line_.healing.model, "A GGUF file")->required();
  healing->add_option("FILES", line_.files, "Source files")->required();
  healing->add_flag("--random", line_.healing.random, "Random weights in place of the model's");
  healing->add_option("--layers", line_.healing.layers, "Only the model's first layers; 0: all")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  healing->add_option("--cursors", line_.healing.cursors, "How many cursors")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  healing->add_option("--threads", line_.healing.threads, "Threads; 0: one per physical core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  healing->add_option("--seed", line_.healing.seed, "Of the places")->capture_default_str();
}

void Grammar::add_engine() {
  command("memory", "Read bandwidth by streams, prefetch and page size", "efimd-bench memory",
          Command::kMemory);
  command("operations", "Products of a matrix and some tokens, GB/s of weights",
          "efimd-bench operations Q4_K Q8_0", Command::kOperations)
      ->add_option("TYPES", line_.types, "Types of weights; all where none is named");
  CLI::App* tokenizer = command(
      "tokenizer", "Tokenizing a megabyte of code, and one character typed into it",
      "efimd-bench tokenizer src/*.cpp --vocabulary models/efim-boot.gguf", Command::kTokenizer);
  tokenizer->add_option("FILES", line_.files, "Source files, a megabyte at least")->required();
  tokenizer->add_option("--vocabulary", line_.vocabularies, "GGUF files")->required();
}

void Grammar::add_models() {
  constexpr char kMapped[] = "Keep weights in the order of the file, without panels";
  CLI::App* steps =
      command("steps", "What steps of 1 to 256 tokens cost after some tokens of context",
              "efimd-bench steps model.gguf", Command::kSteps);
  steps->add_option("MODELS", line_.files, "GGUF files")->required();
  steps->add_flag("--mapped", line_.mapped, kMapped);
  steps->add_option("--behind", line_.behind, "Tokens of context")
      ->check(CLI::Range(0, 32'768 - 256))
      ->capture_default_str();
  command("forms", "What steps cost from mapped weights and from panels, in turn",
          "efimd-bench forms model.gguf", Command::kForms)
      ->add_option("MODEL", line_.files, "A GGUF file")
      ->required()
      ->expected(1);
  CLI::App* speed =
      command("speed", "Tokens/s of a prompt of 512 tokens, and of 64 generated after it",
              "efimd-bench speed model.gguf", Command::kSpeed);
  speed->add_option("MODEL", line_.files, "A GGUF file")->required()->expected(1);
  command("warming", "What packed steps and a shared head are worth for several files",
          "efimd-bench warming model.gguf", Command::kWarming)
      ->add_option("MODEL", line_.files, "A GGUF file")
      ->required()
      ->expected(1);
  speed->add_flag("--mapped", line_.mapped, kMapped);
  CLI::App* write =
      command("write", "Writes a model of random weights in the shape of Qwen2.5-Coder-0.5B",
              "efimd-bench write Q4_K model.gguf", Command::kWrite);
  write->add_option("TYPE", line_.type, "Of its weights")->required();
  write->add_option("MODEL", line_.files, "The file to write")->required()->expected(1);
}

/// What the checks of single options cannot see; empty when all is well.
std::string contradiction(const CommandLine& line) {
  if (line.format == "fim" && line.reuse == "all")
    return "--format fim: plain FIM has no more than prefixes to use again; take --reuse prefix\n";
  return {};
}

tl::expected<CommandLine, NothingToRun> Grammar::parse(std::vector<std::string> arguments) {
  if (auto unknown = service::unknown_word(app_, arguments)) return tl::unexpected(*unknown);
  try {
    std::ranges::reverse(arguments);  // as CLI11 wants a vector
    app_.parse(arguments);
  } catch (const CLI::ParseError& error) {
    std::ostringstream out, err;
    const bool asked = app_.exit(error, out, err) == 0;
    return tl::unexpected(asked ? NothingToRun{0, out.str()} : NothingToRun{2, err.str()});
  }
  if (std::string wrong = contradiction(line_); !wrong.empty())
    return tl::unexpected(NothingToRun{2, std::move(wrong)});
  for (const auto& [sub, value] : commands_)
    if (sub->parsed()) line_.command = value;
  return line_;
}

}  // namespace

std::vector<service::CommandHelp> command_help() { return service::command_help(Grammar().app()); }

tl::expected<CommandLine, NothingToRun> parse_command_line(std::vector<std::string> arguments) {
  return Grammar().parse(std::move(arguments));
}

}  // namespace efimd::bench
