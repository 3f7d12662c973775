#include "tests/bench/completion/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/cli/commands/source_place.h"
#include "daemon/cli/commands/table.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/samples.h"

namespace efimd::bench {

using lsp::Json;

namespace {

/// What the events of one kind cost.
struct Row {
  std::string kind;
  Samples prompt = {}, evaluated = {}, reused = {}, shown = {}, first = {};

  void add(const completion::Receipt& receipt) {
    prompt.add(receipt.prompt_tokens);
    evaluated.add(receipt.evaluated_tokens);
    reused.add(receipt.reused_tokens);
    if (!receipt.view.empty()) shown.add(100 * receipt.shown);
    first.add(first_ms(receipt));
  }
};

struct Run {
  Treatment treatment;
  std::vector<Row> rows;  ///< in the order in which kinds came; the last is all of them
  const Row& total() const { return rows.back(); }
};

std::vector<Row> rows_of(const std::vector<Answered>& answers) {
  std::vector<Row> rows;
  Row total{.kind = "all"};
  for (const Answered& answer : answers) {
    auto row = std::ranges::find(rows, answer.kind, &Row::kind);
    if (row == rows.end()) row = rows.insert(rows.end(), Row{.kind = answer.kind});
    row->add(answer.receipt);
    total.add(answer.receipt);
  }
  rows.push_back(std::move(total));
  return rows;
}

std::vector<Treatment> treatments(const CommandLine& options) {
  using Format = Treatment::Format;
  using Reuse = Treatment::Reuse;
  if (options.format.empty() && options.reuse.empty())
    return {{}, {Format::kPlainFim, Reuse::kPrefix}, {Format::kPlainFim, Reuse::kNone}};
  // What is not said follows from what is: all reuse is EFIM's, less of it is what plain FIM has.
  Treatment one;
  const bool all = options.reuse.empty() ? options.format == "efim" : options.reuse == "all";
  one.reuse = all ? Reuse::kAll : options.reuse == "none" ? Reuse::kNone : Reuse::kPrefix;
  const bool efim = options.format.empty() ? all : options.format == "efim";
  one.format = efim ? Format::kEfim : Format::kPlainFim;
  return {one};
}

std::string text_of(const std::vector<Run>& runs) {
  std::vector<std::vector<std::string>> cells;
  for (const Run& run : runs)
    for (const Row& row : run.rows)
      cells.push_back(
          {treatment_name(run.treatment), row.kind, std::to_string(row.first.count()),
           fmt::format("{:.0f}", row.prompt.mean()), fmt::format("{:.1f}", row.evaluated.mean()),
           fmt::format("{:.1f}", row.reused.mean()), fmt::format("{:.0f} %", row.shown.mean()),
           fmt::format("{:.1f}", row.first.percentile(50)),
           fmt::format("{:.1f}", row.first.percentile(95)),
           fmt::format("{:.0f}", row.first.sum())});
  std::string text = service::table({{"treatment", service::Align::kLeft},
                                     {"event", service::Align::kLeft},
                                     {"n"},
                                     {"prompt"},
                                     {"evaluated"},
                                     {"reused"},
                                     {"of the file"},
                                     {"first ms p50"},
                                     {"p95"},
                                     {"sum"}},
                                    cells);
  const Row& base = runs.front().total();
  for (std::size_t i = 1; i < runs.size(); ++i)
    text += fmt::format(
        "{} against {}: {} the evaluated tokens, {} the time to first tokens, "
        "prompts {} as long\n",
        treatment_name(runs[i].treatment), treatment_name(runs[0].treatment),
        times_text(runs[i].total().evaluated.sum(), base.evaluated.sum()),
        times_text(runs[i].total().first.sum(), base.first.sum()),
        times_text(runs[i].total().prompt.sum(), base.prompt.sum()));
  return text;
}

Json row_json(const Row& row) {
  return {{"kind", row.kind},
          {"n", row.first.count()},
          {"promptMean", row.prompt.mean()},
          {"evaluatedMean", row.evaluated.mean()},
          {"evaluatedMax", row.evaluated.percentile(100)},
          {"evaluatedSum", row.evaluated.sum()},
          {"reusedMean", row.reused.mean()},
          {"shownMean", row.shown.mean()},
          {"firstTokenMsP50", row.first.percentile(50)},
          {"firstTokenMsP95", row.first.percentile(95)},
          {"firstTokenMsSum", row.first.sum()}};
}

Json json_of(const std::vector<Run>& runs) {
  Json list = Json::array();
  for (const Run& run : runs) {
    Json rows = Json::array();
    for (const Row& row : run.rows) rows.push_back(row_json(row));
    list.push_back({{"treatment", treatment_name(run.treatment)}, {"rows", std::move(rows)}});
  }
  return list;
}

struct Replayed {
  std::span<const TraceEvent> trace;
  ReplayOptions options;
};

/// One treatment's answers, and under what they were given.
struct MeasuredReplay {
  std::string description;
  int window = 0;
  std::vector<Answered> answers;
};

Result<MeasuredReplay> measure(const service::Paths& paths, Treatment treatment, int window,
                               const Replayed& replayed) {
  if (treatment.is_usual()) {
    const auto bench = BenchService::open(paths, window);
    if (!bench) return tl::unexpected(bench.error());
    const int used = (*bench)->status().window_tokens;
    auto answers = replay(**bench, replayed.trace, replayed.options);
    if (!answers) return tl::unexpected(answers.error());
    return MeasuredReplay{(*bench)->description(), used, std::move(*answers)};
  }
  auto opened = open_baseline(paths, {.treatment = treatment, .prompt_tokens_max = window});
  if (!opened) return tl::unexpected(opened.error());
  auto answers = replay(*opened->baseline, replayed.trace, replayed.options);
  if (!answers) return tl::unexpected(answers.error());
  return MeasuredReplay{std::move(opened->description), opened->baseline->window_tokens(),
                        std::move(*answers)};
}

}  // namespace

int run_replay(const service::Paths& paths, const CommandLine& options) {
  const auto text = service::read_text(options.files.front());
  if (!text) return failed(text.error());
  const auto trace = parse_trace(*text);
  if (!trace) return failed(trace.error());
  std::vector<Run> runs;
  std::string description;
  int window = 0;  // the first treatment's measured one holds for all
  const Replayed replayed{*trace,
                          {options.tokens_max, std::chrono::milliseconds(options.pause_ms)}};
  for (const Treatment treatment : treatments(options)) {
    const auto measured = measure(paths, treatment, window, replayed);
    if (!measured) return failed(measured.error());
    window = measured->window;
    description = measured->description;
    runs.push_back({treatment, rows_of(measured->answers)});
  }
  if (options.json) {
    fmt::print("{}\n", lsp::json_text({{"model", description},
                                       {"windowTokens", window},
                                       {"pauseMs", options.pause_ms},
                                       {"treatments", json_of(runs)}}));
  } else {
    fmt::print("{}, prompts of at most {} tokens, {} ms between events\n{}", description, window,
               options.pause_ms, text_of(runs));
  }
  return 0;
}

}  // namespace efimd::bench
