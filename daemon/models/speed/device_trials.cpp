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

constexpr std::size_t kTrialsBytesMax = std::size_t{256} << 10;

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

/// Why the GPU cannot be used with the model; empty if nothing is known of that.
std::string refusal_in(const Json& kept, const std::string& key) {
  const auto found = kept.find(key);
  if (found == kept.end() || !found->is_object()) return {};
  const auto why = found->find("refused");
  return why != found->end() && why->is_string() ? why->get<std::string>() : std::string();
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
  const auto keep = [&](Json found) {
    if (kept.size() >= kKeptMax) kept.clear();
    kept[key] = std::move(found);
    static_cast<void>(replace_small_file(file_, kept.dump(1) + "\n"));
  };
  if (std::string why = refusal_in(kept, key); !why.empty()) return why;
  std::optional<AnswerTimes> times = times_in(kept, key);
  if (!times) {
    const auto of_gpu = measure(gpu.kind);
    if (!of_gpu) {
      // Another failure, such as too little memory, may be over at the next start.
      if (of_gpu.error().fault == Fault::kUnsupported) keep({{"refused", of_gpu.error().what}});
      return of_gpu.error().what;
    }
    const auto of_cpu = measure("cpu");
    if (!of_cpu) return {};
    times = {answer_ms(*of_gpu), answer_ms(*of_cpu)};
    keep({{"gpuMs", times->gpu_ms}, {"cpuMs", times->cpu_ms}});
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
      engine::DeviceWish part = wish;
      part.page_count = pages;
      part.weights_at_once = true;
      part.weights_told = {};
      part.objection = {};
      return engine::open_backend_of(kind, shape, weights, part);
    };
    return expected_speed(model, make, limits);
  };
}

}  // namespace efimd::service
