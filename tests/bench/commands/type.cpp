#include <fmt/format.h>

#include <utility>

#include "daemon/cli/commands/source_place.h"
#include "daemon/cli/commands/table.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/typing.h"

namespace efimd::bench {

using lsp::Json;

namespace {

/// `part` of `whole`, 0 of none.
double share(std::size_t part, std::size_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string text_of(const TypingResult& result) {
  const auto percent = [](double value) { return fmt::format("{:.1f} %", value * 100); };
  const auto ms = [&](double percentile) {
    return fmt::format("{:.0f} ms", result.suggestion_ms.percentile(percentile));
  };
  return service::listing(
      {{"keys", fmt::format("{} pressed where {} are typed, {} of them accepting", result.keys,
                            result.keys_by_hand, result.accepted)},
       {"keystrokes saved", percent(result.saved_share())},
       {"answered before the next key", percent(share(result.answered, result.keys))},
       {"with a suggestion", percent(share(result.suggested, result.keys))},
       {"by type-through", percent(share(result.typed_through, result.keys))},
       {"key to suggestion", fmt::format("p50 {}, p95 {}, p99 {}", ms(50), ms(95), ms(99))},
       {"typing", service::duration_text(result.typing_s)},
       {"CPU per minute of typing", fmt::format("{:.1f} s", result.cpu_s_per_minute())}});
}

Json json_of(const TypingResult& result) {
  return {{"keysByHand", result.keys_by_hand},
          {"keys", result.keys},
          {"accepted", result.accepted},
          {"savedShare", result.saved_share()},
          {"answeredShare", share(result.answered, result.keys)},
          {"suggestedShare", share(result.suggested, result.keys)},
          {"typedThroughShare", share(result.typed_through, result.keys)},
          {"suggestionMsP50", result.suggestion_ms.percentile(50)},
          {"suggestionMsP95", result.suggestion_ms.percentile(95)},
          {"suggestionMsP99", result.suggestion_ms.percentile(99)},
          {"typingS", result.typing_s},
          {"cpuSPerMinute", result.cpu_s_per_minute()}};
}

}  // namespace

int run_type(const service::Paths& paths, const CommandLine& options) {
  std::vector<Exercise> exercises;
  for (const auto& file : options.files) {
    const auto text = service::read_text(file);
    if (!text) return failed(text.error());
    exercises.push_back(options.new_files ? new_file_of(*text, options.lines)
                                          : exercise_of(*text, options.lines, options.seed));
  }
  const auto bench = BenchService::open(paths, 0);
  if (!bench) return failed(bench.error());
  TypingResult result;
  for (std::size_t i = 0; i < exercises.size(); ++i)
    if (auto typed =
            type_exercise(**bench, options.files[i].string(), exercises[i],
                          {options.speed, options.seed + static_cast<std::uint32_t>(i)}, result);
        !typed)
      return failed(typed.error());
  const std::string description = (*bench)->description();
  if (options.json) {
    fmt::print("{}\n", lsp::json_text({{"model", description},
                                       {"files", options.files.size()},
                                       {"speed", options.speed},
                                       {"typing", json_of(result)}}));
  } else {
    fmt::print("{}: {} files, {} lines of each, {} times a person's speed\n{}", description,
               options.files.size(), options.lines, options.speed, text_of(result));
  }
  return 0;
}

}  // namespace efimd::bench
