#include "daemon/models/speed/device_trials.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/small_file.h"
#include "daemon/config/version.h"
#include "daemon/models/kept_json.h"
#include "engine/backend/cpu/cpu_backend.h"

namespace efimd::service {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kTrialsBytesMax = std::size_t{64} << 10;

std::optional<double> time_in(const Json& times, const char* device) {
  const auto found = times.find(device);
  if (found == times.end() || !found->is_number()) return std::nullopt;
  const auto ms = found->get<double>();
  return std::isfinite(ms) && ms > 0 ? std::optional(ms) : std::nullopt;
}

std::optional<AnswerTimes> times_in(const Json& kept, const std::string& key) {
  const auto found = kept.find(key);
  if (found == kept.end() || !found->is_object()) return std::nullopt;
  const auto gpu = time_in(*found, "gpuMs"), cpu = time_in(*found, "cpuMs");
  return gpu && cpu ? std::optional(AnswerTimes{*gpu, *cpu}) : std::nullopt;
}

}  // namespace

double answer_ms(const ExpectedSpeed& speed) {
  return 1000 * (kTrialPromptTokens / speed.prompt_tokens_per_s +
                 kTrialWrittenTokens / speed.generation_tokens_per_s);
}

std::string DeviceTrials::cpu_instead(const engine::FoundGpu& gpu, const std::string& setting,
                                      const Measure& measure) const {
  const std::string key = fmt::format("{} {}; {}", gpu.kind, gpu.name, setting);
  Json kept = read_kept_json(file_, kTrialsBytesMax);
  std::optional<AnswerTimes> times = times_in(kept, key);
  if (!times) {
    const auto of_gpu = measure(gpu.kind);
    if (!of_gpu) return of_gpu.error().what;
    const auto of_cpu = measure("cpu");
    if (!of_cpu) return {};
    times = {answer_ms(*of_gpu), answer_ms(*of_cpu)};
    if (kept.size() >= kKeptMax) kept.clear();
    kept[key] = {{"gpuMs", times->gpu_ms}, {"cpuMs", times->cpu_ms}};
    static_cast<void>(replace_small_file(file_, kept.dump(1) + "\n"));
  }
  if (times->gpu_is_worth_it()) return {};
  return fmt::format("{} would answer in {:.0f} ms, the CPU in {:.0f}", gpu.name, times->gpu_ms,
                     times->cpu_ms);
}

std::string trial_setting(const engine::Model& model, const engine::DeviceWish& wish) {
  return fmt::format("{}; efimd {}, cpu {}, {} threads, {}", model.digest().hex(), version(),
                     engine::arithmetic_name(engine::best_isa()), wish.threads,
                     wish.weights == engine::WeightsForm::kMapped ? "mapped" : "panels");
}

DeviceTrials::Measure measure_of(const engine::Model& model, const engine::DeviceWish& wish,
                                 std::stop_token stop) {
  const SpeedLimits limits{kTrialPromptTokens, kTrialSecondsMax, std::move(stop)};
  return [&model, &wish, limits](std::string_view kind) {
    const auto make = [&](const engine::ModelShape& shape, const engine::ModelWeights& weights,
                          int pages) {
      engine::DeviceWish part;
      part.kind = wish.kind;
      part.memory_bytes = wish.memory_bytes;
      part.variants = wish.variants;
      part.threads = wish.threads;
      part.page_count = pages;
      part.weights = wish.weights;
      part.weights_at_once = true;
      part.cache_dir = wish.cache_dir;
      return engine::open_backend_of(kind, shape, weights, part);
    };
    return expected_speed(model, make, limits);
  };
}

}  // namespace efimd::service
