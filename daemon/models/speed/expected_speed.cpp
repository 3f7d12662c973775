#include "daemon/models/speed/expected_speed.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <numeric>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/open_backend.h"

namespace efimd::service {

using namespace engine;
namespace {

using Clock = std::chrono::steady_clock;

/// More than the caches of most machines hold, and read from a disk within a second.
constexpr std::uint64_t kMeasuredBytes = std::uint64_t{256} << 20;
/// Time for one number; the fastest run counts, for other programs only slow one down. It ends early when no run was faster by
/// a hundredth for so long: a card that is raising its clock, or a core that is taken away, has the whole time.
constexpr double kNumberSeconds = 0.4, kSettledSeconds = 0.1;

struct StepSeconds {
  double one_token;
  double many_tokens;
  int many;  ///< tokens
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::uint64_t bytes_of(const TensorView& tensor) {
  return tensor.row_bytes() * static_cast<std::uint64_t>(tensor.rows);
}

/// Layers that hold kMeasuredBytes; at least two, if there are two.
int layers_to_measure(const ModelShape& shape, const ModelWeights& weights,
                      std::uint64_t weight_bytes) {
  const auto layers = static_cast<std::uint64_t>(shape.layers);
  std::uint64_t outside = bytes_of(weights.token_embedding);
  if (weights.output.data != weights.token_embedding.data) outside += bytes_of(weights.output);
  const std::uint64_t layer_bytes = std::max<std::uint64_t>((weight_bytes - outside) / layers, 1);
  const std::uint64_t enough = std::max<std::uint64_t>(kMeasuredBytes / layer_bytes, 2);
  return static_cast<int>(std::min(layers, enough));
}

/// The fastest step of so many tokens after kExpectedBehindTokens, with any content in the KV
/// pages. The first run brings weights into memory and does not count.
Result<double> step_seconds(Backend& backend, int layers, int tokens, const std::stop_token& stop) {
  std::vector<PageIndex> pages(static_cast<std::size_t>(backend.page_count()));
  std::iota(pages.begin(), pages.end(), 0);
  const std::vector<TokenId> ids(static_cast<std::size_t>(tokens), 0);
  const StepSequence sequence{0, tokens, kExpectedBehindTokens, pages};
  const int last = tokens - 1;
  const Step step{ids, {&sequence, 1}, {&last, 1}};
  if (auto first = forward(backend, layers, step, stop); !first)
    return tl::unexpected(std::move(first).error());
  double best = 1e9;
  const Clock::time_point begin = Clock::now();
  Clock::time_point bettered = begin;
  do {
    const Clock::time_point run = Clock::now();
    if (auto done = forward(backend, layers, step, stop); !done)
      return tl::unexpected(std::move(done).error());
    const double seconds = seconds_since(run);
    if (seconds < 0.99 * best) bettered = Clock::now();
    best = std::min(best, seconds);
  } while (seconds_since(begin) < kNumberSeconds && seconds_since(bettered) < kSettledSeconds);
  return best;
}

tl::unexpected<Error> too_slow(const ExpectedSpeed& speed) {
  return fail(Fault::kUnsupported, speed.device_name + " is too slow to be measured",
              "set device.kind to cpu");
}

/// The model's first `layers` layers on a device of their own, which `speed` then names.
Result<StepSeconds> measure(ModelShape shape, ModelWeights weights, int layers,
                            const MakeDevice& make_device, const SpeedLimits& limits,
                            ExpectedSpeed& speed) {
  shape.layers = layers;
  weights.layers.resize(static_cast<std::size_t>(layers));
  const int pages = (kExpectedBehindTokens + limits.step_tokens_max) / kPageTokens;
  auto backend = make_device(shape, weights, pages);
  if (!backend) return tl::unexpected(std::move(backend).error());
  speed.device_kind = (*backend)->kind();
  speed.device_name = (*backend)->name();
  const int many = std::min((*backend)->step_tokens_max(), limits.step_tokens_max);
  const Result<double> one = step_seconds(**backend, layers, 1, limits.stop);
  if (!one) return tl::unexpected(one.error());
  // A step of many tokens shares the reading of weights. On a GPU nothing can stop it.
  if (*one * many / 4 > limits.seconds_max / 8) return too_slow(speed);
  return step_seconds(**backend, layers, many, limits.stop).map([&](double seconds) {
    return StepSeconds{*one, seconds, many};
  });
}

}  // namespace

Result<ExpectedSpeed> expected_speed(const Model& model, const MakeDevice& make_device,
                                     const SpeedLimits& limits) {
  return expected_speed(model.shape(), model.weights(), model.weight_bytes(), make_device, limits);
}

Result<ExpectedSpeed> expected_speed(const ModelShape& shape, const ModelWeights& weights,
                                     std::uint64_t weight_bytes, const MakeDevice& make_device,
                                     const SpeedLimits& limits) {
  ExpectedSpeed speed;
  const int layers = shape.layers;
  const int measured = layers_to_measure(shape, weights, weight_bytes);
  const auto first = measure(shape, weights, 1, make_device, limits, speed);
  if (!first) return tl::unexpected(first.error());
  // Each number takes two steps at least. A driver that compiles for the first time is not slow.
  const double left = 2 * measured * (first->one_token + first->many_tokens);
  if (measured > 1 && left > limits.seconds_max) return too_slow(speed);
  const auto whole =
      measured == 1 ? first : measure(shape, weights, measured, make_device, limits, speed);
  if (!whole) return tl::unexpected(whole.error());
  // A device that another program held up during one measurement must not make a layer free.
  const double more_layers = std::max(measured - 1, 1);
  const auto of_a_layer = [&](double all, double one) {
    return std::max((all - one) / more_layers, all / (2 * measured));
  };
  const double generation = of_a_layer(whole->one_token, first->one_token);
  const double prompt = of_a_layer(whole->many_tokens, first->many_tokens);
  speed.layers_measured = measured;
  speed.generation_tokens_per_s = 1 / (whole->one_token + generation * (layers - measured));
  speed.prompt_tokens_per_s = whole->many / (prompt * layers);
  return speed;
}

namespace {

DeviceHere device_here(const std::string& kind, const Config& config, WeightsForm weights) {
  return {kind, [=, &config](const ModelShape& shape, const ModelWeights& of, int pages) {
            DeviceWish wish;
            wish.kind = config.device_kind;
            wish.variants = config.gpu_variants;
            wish.threads = config.device_threads;
            wish.page_count = pages;
            wish.weights = weights;
            wish.weights_at_once = true;
            return open_backend_of(kind, shape, of, wish);
          }};
}

}  // namespace

std::vector<DeviceHere> devices_here(const Config& config,
                                     std::span<const std::uint64_t> weight_bytes) {
  std::vector<DeviceHere> devices;
  for (const FoundDevice& device : find_devices(config.device_kind))
    if (device.usable) devices.push_back(device_here(device.kind, config, WeightsForm::kMapped));
  const std::uint64_t most = panels_bytes_max(config.device_weights, kv_budget_bytes(config));
  const auto as_panels = [=](std::uint64_t bytes) { return bytes <= most; };
  const bool all = std::ranges::all_of(weight_bytes, as_panels);
  if (all || std::ranges::any_of(weight_bytes, as_panels)) {
    devices.push_back(device_here("cpu", config, config.device_weights));
    devices.back().weight_bytes_max = all ? 0 : most;
  }
  if (!all) devices.push_back(device_here("cpu", config, WeightsForm::kMapped));
  return devices;
}

}  // namespace efimd::service
