#include "tests/bench/completion/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

constexpr std::array<std::string_view, recall_places::kKinds> kKindNames = {"inside", "start",
                                                                            "finished"};

double median_ms(std::vector<double> ms) {
  if (ms.empty()) return 0;
  const auto middle = ms.begin() + static_cast<std::ptrdiff_t>(ms.size() / 2);
  std::ranges::nth_element(ms, middle);
  return *middle;
}

struct MeasuredPlaces {
  std::string_view name;
  Asked asked;
  PlacesTallies tallies = {};
};

std::vector<std::string> row_of(std::string_view kind, std::string_view name,
                                const PlacesTally& tally) {
  const auto text = [](double value) { return fmt::format("{:.1f}", value); };
  return {std::string(kind),
          std::string(name),
          std::to_string(tally.cursors),
          text(percent_of(tally.shown, tally.cursors)),
          text(percent_of(tally.exact, tally.cursors)),
          text(percent_of(tally.saved, tally.chars)),
          text(percent_of(tally.begins, tally.shown)),
          text(percent_of(tally.wrong, tally.shown)),
          text(percent_of(tally.cursors - tally.shown, tally.cursors)),
          text(percent_of(tally.from_recall, tally.shown)),
          std::to_string(tally.further),
          text(percent_of(tally.further_right, tally.further)),
          text(median_ms(tally.ms))};
}

Json json_of(const PlacesTally& tally) {
  return {{"cursors", tally.cursors},
          {"shown", tally.shown},
          {"exact", tally.exact},
          {"begins", tally.begins},
          {"wrong", tally.wrong},
          {"savedChars", tally.saved},
          {"chars", tally.chars},
          {"furtherLines", tally.further},
          {"furtherRight", tally.further_right},
          {"fromRecall", tally.from_recall},
          {"generatedTokens", tally.generated},
          {"draftedTokens", tally.drafted},
          {"acceptedTokens", tally.accepted},
          {"msP50", median_ms(tally.ms)}};
}

void print(const std::vector<MeasuredPlaces>& all) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t kind = 0; kind < kKindNames.size(); ++kind)
    for (const MeasuredPlaces& measured : all)
      rows.push_back(row_of(kKindNames[kind], measured.name, measured.tallies[kind]));
  fmt::print("{}", service::table({{"cursors", Align::kLeft},
                                   {"recall", Align::kLeft},
                                   {"count"},
                                   {"shown %"},
                                   {"exact %"},
                                   {"chars %"},
                                   {"begins %"},
                                   {"wrong %"},
                                   {"quiet %"},
                                   {"recalled %"},
                                   {"further"},
                                   {"right %"},
                                   {"ms p50"}},
                                  rows));
}

void print_json(std::string_view description, const std::vector<MeasuredPlaces>& all) {
  Json places = Json::array();
  for (std::size_t kind = 0; kind < kKindNames.size(); ++kind)
    for (const MeasuredPlaces& measured : all) {
      Json row = json_of(measured.tallies[kind]);
      row["cursorKind"] = kKindNames[kind];
      row["recall"] = measured.name;
      places.push_back(std::move(row));
    }
  fmt::print("{}\n", lsp::json_text({{"model", description}, {"places", std::move(places)}}));
}

int run_drafts(BenchService& bench, const std::vector<recall_places::Project>& projects,
               const CommandLine& options) {
  DraftPairs pairs;
  for (const recall_places::Project& project : projects)
    measure_drafts(bench, project, options.places, pairs);
  const auto each = [&](std::size_t sum) {
    return pairs.texts == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(pairs.texts);
  };
  if (options.json) {
    fmt::print("{}\n", lsp::json_text({{"model", bench.description()},
                                       {"texts", pairs.texts},
                                       {"tokens", pairs.tokens},
                                       {"stepsWithout", pairs.steps_without},
                                       {"stepsWith", pairs.steps_with},
                                       {"draftedTokens", pairs.drafted},
                                       {"acceptedTokens", pairs.accepted},
                                       {"differing", pairs.differing},
                                       {"unlike", pairs.unlike},
                                       {"msMeanWithout", mean_of(pairs.ms_without)},
                                       {"msMeanWith", mean_of(pairs.ms_with)},
                                       {"msMeanCandidates", mean_of(pairs.ms_candidates)},
                                       {"msP50Without", median_ms(pairs.ms_without)},
                                       {"msP50With", median_ms(pairs.ms_with)}}));
    return 0;
  }
  fmt::print(
      "{}: {} generated texts of {} tokens and more, {:.1f} tokens each; {} differ\n"
      "left out             {} cursors whose second prompt showed more\n"
      "steps of the engine  {:.1f} without drafts, {:.1f} with, {:.2f} times fewer\n"
      "drafted              {} tokens, {:.1f} % accepted\n"
      "ms mean              {:.2f} without, {:.2f} with, {:.2f} of both for candidates to show\n"
      "ms p50               {:.2f} without, {:.2f} with\n",
      bench.description(), pairs.texts, kDraftedTokensMin, each(pairs.tokens), pairs.differing,
      pairs.unlike, each(pairs.steps_without), each(pairs.steps_with),
      pairs.steps_with == 0
          ? 0
          : static_cast<double>(pairs.steps_without) / static_cast<double>(pairs.steps_with),
      pairs.drafted, percent_of(pairs.accepted, pairs.drafted), mean_of(pairs.ms_without),
      mean_of(pairs.ms_with), mean_of(pairs.ms_candidates), median_ms(pairs.ms_without),
      median_ms(pairs.ms_with));
  return 0;
}

}  // namespace

int run_places(const service::Paths& paths, const CommandLine& options) {
  const auto bench = BenchService::open(paths, 0);
  if (!bench) return failed(bench.error());
  std::vector<recall_places::Project> projects;
  for (const auto& folder : options.files) {
    projects.push_back(recall_places::read_project(folder));
    if (projects.back().files.empty())
      return failed({Fault::kNotFound, folder.string() + " holds no source files", ""});
  }
  if (!options.places.dump.empty()) {
    const auto dumped = dump_places(paths, projects, options.places);
    return dumped ? 0 : failed(dumped.error());
  }
  if (options.places.drafts) return run_drafts(**bench, projects, options);
  std::vector<MeasuredPlaces> all = {{"without", Asked::kWithout}};
  if (!options.places.alone) {
    all.push_back({"with", Asked::kWith});
    all.push_back({"alone", Asked::kRecallAlone});
  }
  for (const recall_places::Project& project : projects) {
    for (MeasuredPlaces& measured : all) {
      const PlacesTallies tallies =
          measure_places(**bench, project, options.places, measured.asked);
      for (std::size_t kind = 0; kind < tallies.size(); ++kind)
        measured.tallies[kind].add(tallies[kind]);
    }
  }
  if (options.json) {
    print_json((*bench)->description(), all);
  } else {
    fmt::print("{}: {} projects, {} places of each kind in each{}\n", (*bench)->description(),
               options.files.size(), options.places.count,
               options.places.above ? ", only the text above the cursor" : "");
    print(all);
  }
  return 0;
}

}  // namespace efimd::bench
