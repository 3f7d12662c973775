#include "tests/bench/completion/rounds.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "daemon/cli/commands/source_place.h"
#include "daemon/cli/commands/table.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/model_catalog.h"
#include "engine/model/model.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"

namespace efimd::bench {

using lsp::Json;

namespace {

/// In full views all three show the same text, and there is no idle time: EFIM is compared by its
/// layout alone. The last is what the others are compared with.
constexpr std::array kTreatments = {
    Treatment{Treatment::Format::kEfim, Treatment::Reuse::kPrefix},
    Treatment{Treatment::Format::kPlainFim, Treatment::Reuse::kPrefix},
    Treatment{Treatment::Format::kPlainFim, Treatment::Reuse::kNone}};

/// What the paper's abstract and its summaries say of the first two, against the third.
struct Paper {
  const char* latency;
  const char* throughput;
};
constexpr std::array kPaper = {Paper{"-52 %", "+98 %"}, Paper{"-21 %", "+26 %"}};

double per_s(const RoundsResult& result, double count) {
  return result.wall_s > 0 ? count / result.wall_s : 0;
}
double requests_per_s(const RoundsResult& result) {
  return per_s(result, static_cast<double>(result.latency.count()));
}

std::string text_of(const std::vector<RoundsResult>& results) {
  std::vector<std::vector<std::string>> cells;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const RoundsResult& result = results[i];
    cells.push_back({treatment_name(kTreatments[i]), std::to_string(result.latency.count()),
                     fmt::format("{:.0f}", result.prompt.mean()),
                     fmt::format("{:.1f}", result.evaluated.mean()),
                     fmt::format("{:.0f}", result.generated.mean()),
                     fmt::format("{:.0f}", result.first.mean()),
                     fmt::format("{:.0f}", result.latency.mean()),
                     fmt::format("{:.2f}", requests_per_s(result)),
                     fmt::format("{:.1f}", per_s(result, result.generated.sum()))});
  }
  std::string text = service::table({{"treatment", service::Align::kLeft},
                                     {"n"},
                                     {"prompt"},
                                     {"evaluated"},
                                     {"generated"},
                                     {"first ms"},
                                     {"latency ms"},
                                     {"requests/s"},
                                     {"tokens/s"}},
                                    cells);
  const RoundsResult& none = results.back();
  for (std::size_t i = 0; i + 1 < results.size(); ++i)
    text += fmt::format("{} against {}: latency {}, throughput {} (the paper: {}, {})\n",
                        treatment_name(kTreatments[i]), treatment_name(kTreatments.back()),
                        change_text(results[i].latency.mean(), none.latency.mean()),
                        change_text(requests_per_s(results[i]), requests_per_s(none)),
                        kPaper[i].latency, kPaper[i].throughput);
  return text;
}

Json json_of(const std::vector<RoundsResult>& results) {
  Json list = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i)
    list.push_back({{"treatment", treatment_name(kTreatments[i])},
                    {"n", results[i].latency.count()},
                    {"promptMean", results[i].prompt.mean()},
                    {"evaluatedMean", results[i].evaluated.mean()},
                    {"reusedMean", results[i].reused.mean()},
                    {"generatedMean", results[i].generated.mean()},
                    {"firstTokenMsMean", results[i].first.mean()},
                    {"latencyMsMean", results[i].latency.mean()},
                    {"latencyMsP50", results[i].latency.percentile(50)},
                    {"latencyMsP95", results[i].latency.percentile(95)},
                    {"requestsPerS", requests_per_s(results[i])},
                    {"tokensPerS", per_s(results[i], results[i].generated.sum())}});
  return list;
}

Result<std::vector<std::string>> read_sources(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> sources;
  for (const auto& file : files) {
    auto text = service::read_text(file);
    if (!text) return tl::unexpected(text.error());
    sources.push_back(std::move(*text));
  }
  return sources;
}

/// The model's file, for its tokenizer: prompts are cut by tokens.
Result<std::shared_ptr<const engine::Model>> open_model(const service::Paths& paths) {
  const auto choice =
      service::choose_model(service::config_in_force(paths), service::find_model_places());
  if (!choice) return tl::unexpected(choice.error());
  return engine::Model::open(choice->path);
}

/// One baseline for each treatment.
Result<std::vector<OpenedBaseline>> open_baselines(const service::Paths& paths,
                                                   int prompt_tokens_max) {
  std::vector<OpenedBaseline> baselines;
  for (const Treatment treatment : kTreatments) {
    auto opened = open_baseline(
        paths, {.treatment = treatment, .prompt_tokens_max = prompt_tokens_max, .past_end = true});
    if (!opened) return tl::unexpected(opened.error());
    baselines.push_back(std::move(*opened));
  }
  return baselines;
}

Result<std::vector<RoundsResult>> run_in_turn(const std::vector<OpenedBaseline>& baselines,
                                              const std::vector<RoundsUser>& users, int rounds) {
  std::vector<Rounds> runs;
  for (const auto& opened : baselines) runs.emplace_back(*opened.baseline, users);
  for (int round = 0; round < rounds; ++round)
    for (Rounds& run : runs)
      if (auto done = run.run(); !done) return tl::unexpected(done.error());
  std::vector<RoundsResult> results;
  for (const Rounds& run : runs) results.push_back(run.result());
  return results;
}

}  // namespace

int run_rounds(const service::Paths& paths, const CommandLine& options) {
  const auto sources = read_sources(options.files);
  if (!sources) return failed(sources.error());
  const auto model = open_model(paths);
  if (!model) return failed(model.error());
  const auto window = RoundsWindow::of(
      options.prompt_tokens, options.rounds,
      std::min((*model)->shape().context_tokens, engine::EngineOptions().window_tokens_max));
  const auto users =
      rounds_users(*sources, options.users, options.rounds, window, (*model)->tokenizer());
  if (!users) return failed(users.error());
  const auto baselines = open_baselines(paths, window.prompt_tokens_max);
  if (!baselines) return failed(baselines.error());
  const std::string& description = baselines->front().description;
  const auto results = run_in_turn(*baselines, *users, options.rounds);
  if (!results) return failed(results.error());
  if (options.json) {
    fmt::print("{}\n", lsp::json_text({{"model", description},
                                       {"users", options.users},
                                       {"rounds", options.rounds},
                                       {"promptTokensWanted", options.prompt_tokens},
                                       {"treatments", json_of(*results)}}));
    return 0;
  }
  fmt::print(
      "{}: {} users, {} rounds, {} tokens each, requests answered one after the other\n"
      "{} tokens before the hole and {} after it; {} tokens are the paper's prompt{}\n{}",
      description, options.users, options.rounds, kRoundTokens, window.before, window.after, 2355,
      window.before + window.after + 16 < options.prompt_tokens
          ? ", the model's window allows no more than this"
          : "",
      text_of(*results));
  return 0;
}

}  // namespace efimd::bench
