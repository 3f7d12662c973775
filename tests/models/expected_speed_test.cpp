#include "daemon/models/speed/expected_speed.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "engine/backend/cpu/cpu_backend.h"
#include "tests/engine/model/open_model.h"
#include "tests/support/model_writer.h"

namespace efimd::test {
namespace {

using engine::ModelShape;
using engine::ModelWeights;

Result<std::unique_ptr<engine::Backend>> on_cpu(const ModelShape& shape,
                                                const ModelWeights& weights, int pages) {
  engine::CpuOptions options;
  options.threads = 1;
  options.page_count = pages;
  return engine::make_cpu_backend(shape, weights, options);
}

std::shared_ptr<const engine::Model> model_of(int layers) {
  TinyModel tiny;
  tiny.layers = layers;
  return opened(tiny_model(tiny));
}

void check_rates(const service::ExpectedSpeed& speed) {
  CHECK(std::isfinite(speed.generation_tokens_per_s));
  CHECK(std::isfinite(speed.prompt_tokens_per_s));
  CHECK(speed.generation_tokens_per_s > 0);
  CHECK(speed.prompt_tokens_per_s > 0);
}

}  // namespace

TEST_CASE("the expected speed is that of the device's own steps over the first layers") {
  std::vector<int> layers;
  const auto speed = service::expected_speed(
      *model_of(3), [&](const ModelShape& shape, const ModelWeights& weights, int pages) {
        layers.push_back(shape.layers);
        CHECK(weights.layers.size() == static_cast<std::size_t>(shape.layers));
        return on_cpu(shape, weights, pages);
      });
  REQUIRE(speed);
  CHECK(layers == std::vector{1, 3});
  CHECK(speed->layers_measured == 3);
  CHECK(speed->device_kind == "cpu");
  check_rates(*speed);
}

TEST_CASE("a model of one layer has an expected speed") {
  const auto speed = service::expected_speed(*model_of(1), on_cpu);
  REQUIRE(speed);
  CHECK(speed->layers_measured == 1);
  check_rates(*speed);
}

TEST_CASE("a device is not measured for longer than the limit, once its first layer tells") {
  std::vector<int> layers;
  service::SpeedLimits limits;
  limits.seconds_max = 1e-9;
  const auto speed = service::expected_speed(
      *model_of(3),
      [&](const ModelShape& shape, const ModelWeights& weights, int pages) {
        layers.push_back(shape.layers);
        return on_cpu(shape, weights, pages);
      },
      limits);
  REQUIRE_FALSE(speed);
  CHECK(speed.error().what.find("too slow to be measured") != std::string::npos);
  CHECK(layers == std::vector{1});
}

TEST_CASE("a measurement that is stopped ends") {
  std::stop_source stop;
  stop.request_stop();
  service::SpeedLimits limits;
  limits.stop = stop.get_token();
  const auto speed = service::expected_speed(*model_of(2), on_cpu, limits);
  REQUIRE_FALSE(speed);
  CHECK(speed.error().fault == Fault::kStopped);
}

TEST_CASE("a device that cannot take the model says so instead of a speed") {
  const auto speed =
      service::expected_speed(*model_of(2), [](const ModelShape&, const ModelWeights&, int) {
        return Result<std::unique_ptr<engine::Backend>>(
            fail(Fault::kNoMemory, "the device is full", "free it"));
      });
  REQUIRE_FALSE(speed);
  CHECK(speed.error().what == "the device is full");
}

}  // namespace efimd::test
