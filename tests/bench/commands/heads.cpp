#include "tests/bench/completion/heads.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/cli/commands/table.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/samples.h"

namespace efimd::bench {

using lsp::Json;
using service::Align;

namespace {

constexpr std::array<std::string_view, kNamings> kNamingNames = {
    "all cursors", "names what another file declares", "and nothing else here names it"};

/// Half of the 95 % interval of a difference in pairs, in points.
double half_interval(const HeadTally& tally) {
  const auto n = static_cast<double>(tally.cursors);
  const auto gained = static_cast<double>(tally.only_with);
  const auto lost = static_cast<double>(tally.only_without);
  if (tally.cursors == 0) return 0;
  return 100 * 1.96 * std::sqrt(gained + lost - (gained - lost) * (gained - lost) / n) / n;
}

double gain(const HeadTally& tally) {
  return percent_of(tally.exact_with, tally.cursors) -
         percent_of(tally.exact_without, tally.cursors);
}

Json json_of(const HeadTally& tally) {
  return {{"cursors", tally.cursors},
          {"withHead", tally.with_head},
          {"exactWith", tally.exact_with},
          {"exactWithout", tally.exact_without},
          {"onlyWith", tally.only_with},
          {"onlyWithout", tally.only_without},
          {"savedCharsWith", tally.saved_with},
          {"savedCharsWithout", tally.saved_without},
          {"chars", tally.chars}};
}

void print(const HeadTallies& tallies) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t naming = 0; naming < kNamings; ++naming) {
    const HeadTally& of = tallies[naming];
    const auto share = [](std::size_t part, std::size_t whole) {
      return fmt::format("{:.1f}", percent_of(part, whole));
    };
    rows.push_back({std::string(kNamingNames[naming]), std::to_string(of.cursors),
                    share(of.with_head, of.cursors), share(of.exact_without, of.cursors),
                    share(of.exact_with, of.cursors),
                    fmt::format("{:+.1f} ± {:.1f}", gain(of), half_interval(of)),
                    share(of.saved_without, of.chars), share(of.saved_with, of.chars)});
  }
  fmt::print("{}", service::table({{"the missing text", Align::kLeft},
                                   {"cursors"},
                                   {"with a head %"},
                                   {"exact without %"},
                                   {"exact with %"},
                                   {"points"},
                                   {"chars without %"},
                                   {"chars with %"}},
                                  rows));
}

}  // namespace

int run_heads(const service::Paths& paths, const CommandLine& options) {
  const auto bench = HeadBench::open(paths);
  if (!bench) return failed(bench.error());
  HeadTallies all;
  for (const auto& folder : options.files) {
    const recall_places::Project project = recall_places::read_project(folder);
    if (project.files.empty())
      return failed({Fault::kNotFound, folder.string() + " holds no source files", ""});
    const HeadTallies tallies =
        (*bench)->measure(project, options.places.count, options.places.seed);
    for (std::size_t naming = 0; naming < kNamings; ++naming) all[naming] += tallies[naming];
  }
  if (options.json) {
    Json json = {{"model", (*bench)->description()}};
    constexpr std::array kKeys = {"all", "elsewhere", "new"};
    for (std::size_t naming = 0; naming < kNamings; ++naming)
      json[kKeys[naming]] = json_of(all[naming]);
    fmt::print("{}\n", lsp::json_text(json));
  } else {
    fmt::print("{}: {} projects, without recall\n", (*bench)->description(), options.files.size());
    print(all);
  }
  return 0;
}

}  // namespace efimd::bench
