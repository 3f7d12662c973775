#include <fmt/format.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "daemon/cli/commands/source_place.h"
#include "daemon/cli/commands/table.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/model_catalog.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"
#include "tests/bench/completion/keeping.h"

namespace efimd::bench {

namespace fs = std::filesystem;
using lsp::Json;

namespace {

/// A folder beside the user's store, so that it is on the same disk; removed at the end.
class Scratch {
 public:
  explicit Scratch(const fs::path& cache_dir) {
    std::error_code error;
    fs::create_directories(cache_dir, error);
    std::string pattern = (cache_dir / "bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

double ratio(double value, double base) { return base > 0 ? value / base : 0; }

/// Of a keystroke without a store.
double more_percent(const KeepingResult& result, double more_ms) {
  return 100 * ratio(more_ms, result.without_ms.percentile(50));
}

Json json_of(const completion::Receipt& receipt) {
  return {{"promptTokens", receipt.prompt_tokens},
          {"restoredTokens", receipt.restored_tokens},
          {"evaluatedTokens", receipt.evaluated_tokens},
          {"firstMs", first_ms(receipt)}};
}

Json json_of(const KeepingResult& result) {
  return {{"model", result.description},
          {"cold", json_of(result.cold)},
          {"warm", json_of(result.warm)},
          {"unbroken", json_of(result.unbroken)},
          {"loadMBPerS", result.load_mb_s},
          {"diskMBPerS", result.disk_mb_s},
          {"keys", result.with_ms.count()},
          {"keysApart", result.keys_apart},
          {"firstMsP50With", result.with_ms.percentile(50)},
          {"firstMsP50Without", result.without_ms.percentile(50)},
          {"morePercent", more_percent(result, result.more_ms.percentile(50))},
          {"morePercentLow", more_percent(result, result.more_ms_median.low)},
          {"morePercentHigh", more_percent(result, result.more_ms_median.high)}};
}

std::string text_of(const KeepingResult& result) {
  const double with = result.with_ms.percentile(50), without = result.without_ms.percentile(50);
  return service::listing(
      {{"cold", fmt::format("{} tokens evaluated, the first token after {:.0f} ms",
                            result.cold.evaluated_tokens, first_ms(result.cold))},
       {"after a restart",
        fmt::format("{} of {} tokens restored, {} evaluated, the first token after {:.1f} ms: {} "
                    "sooner",
                    result.warm.restored_tokens, result.warm.prompt_tokens,
                    result.warm.evaluated_tokens, first_ms(result.warm),
                    times_text(first_ms(result.cold), first_ms(result.warm)))},
       {"without one",
        fmt::format("the same key's first token after {:.1f} ms, {} evaluated: after "
                    "the restart it took {} as long",
                    first_ms(result.unbroken), result.unbroken.evaluated_tokens,
                    times_text(first_ms(result.warm), first_ms(result.unbroken)))},
       {"loading",
        fmt::format("{:.0f} MB/s; the disk reads {:.0f} MB/s ({:.0f} %)", result.load_mb_s,
                    result.disk_mb_s, 100 * ratio(result.load_mb_s, result.disk_mb_s))},
       {"a keystroke",
        fmt::format("p50 {:.2f} ms with a store, {:.2f} ms without; the same key costs {:+.1f} % "
                    "with it, between {:+.1f} and {:+.1f} % with 95 % confidence, {} keys ({} left "
                    "out: other prompts)",
                    with, without, more_percent(result, result.more_ms.percentile(50)),
                    more_percent(result, result.more_ms_median.low),
                    more_percent(result, result.more_ms_median.high), result.with_ms.count(),
                    result.keys_apart)}});
}

}  // namespace

int run_store(const service::Paths& paths, const CommandLine& options) {
  const auto text = service::read_text(options.files.front());
  if (!text) return failed(text.error());
  KeepingSetup setup;
  setup.config = service::config_in_force(paths);
  const auto model = service::choose_model(setup.config, service::find_model_places());
  if (!model) return failed(model.error());
  const Scratch scratch(paths.cache_dir);
  if (scratch.path().empty())
    return failed({Fault::kIo, paths.cache_dir.string() + ": no folder can be made in it",
                   "check its permissions"});
  setup.model = model->path;
  setup.folder = scratch.path() / "kv";
  setup.text = *text;
  setup.prompt_tokens = options.store_prompt_tokens;
  setup.keys = options.keys;
  const auto result = run_keeping(setup);
  if (!result) return failed(result.error());
  if (options.json)
    fmt::print("{}\n", lsp::json_text(json_of(*result)));
  else
    fmt::print("{}\n{}", result->description, text_of(*result));
  return 0;
}

}  // namespace efimd::bench
