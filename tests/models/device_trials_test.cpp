#include "daemon/models/speed/device_trials.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/engine/model/open_model.h"
#include "tests/support/model_writer.h"
#include "tests/support/temp_dir.h"

namespace efimd::test {
namespace {

using service::AnswerTimes;
using service::DeviceTrials;
using service::ExpectedSpeed;

const engine::FoundGpu kGpu{"vulkan", "Shared Graphics 620"};

ExpectedSpeed speed(double generation, double prompt) {
  ExpectedSpeed of;
  of.generation_tokens_per_s = generation;
  of.prompt_tokens_per_s = prompt;
  return of;
}

/// Devices of these speeds, and which of them were measured.
struct Devices {
  ExpectedSpeed gpu, cpu;
  std::vector<std::string> measured = {};

  DeviceTrials::Measure measure() {
    return [this](std::string_view kind) -> Result<ExpectedSpeed> {
      measured.emplace_back(kind);
      return kind == "cpu" ? cpu : gpu;
    };
  }
};

}  // namespace

TEST_CASE("an answer is a prompt of 128 tokens and eight written ones") {
  CHECK(service::answer_ms(speed(40, 1280)) == Approx(100 + 200));
}

TEST_CASE("a GPU may take a fifth longer than the CPU") {
  CHECK(AnswerTimes{119, 100}.gpu_is_worth_it());
  CHECK_FALSE(AnswerTimes{121, 100}.gpu_is_worth_it());
}

TEST_CASE("the slower GPU is left alone, and both devices are measured once") {
  const TempDir folder;
  const DeviceTrials trials(folder / "state/device_trials.json");
  Devices slow{speed(20, 128), speed(40, 640)};
  const std::string why = trials.cpu_instead(kGpu, "model", slow.measure());
  CHECK(why == "Shared Graphics 620 would answer in 1400 ms, the CPU in 400");
  CHECK(slow.measured == std::vector<std::string>{"vulkan", "cpu"});
  CHECK(trials.cpu_instead(kGpu, "model", slow.measure()) == why);
  CHECK(slow.measured.size() == 2);
  // Another model, or another GPU, is measured for itself.
  Devices fast{speed(60, 1280), speed(40, 640)};
  CHECK(trials.cpu_instead(kGpu, "another model", fast.measure()).empty());
  CHECK(trials.cpu_instead({"vulkan", "Arc"}, "model", fast.measure()).empty());
  CHECK(fast.measured.size() == 4);
  CHECK(trials.cpu_instead(kGpu, "another model", slow.measure()).empty());
  CHECK(slow.measured.size() == 2);
}

TEST_CASE("a device that fails while it is measured is not used, and nothing is kept of it") {
  const TempDir folder;
  const DeviceTrials trials(folder / "device_trials.json");
  const auto without = [](std::string_view failing) -> DeviceTrials::Measure {
    return [failing](std::string_view kind) -> Result<ExpectedSpeed> {
      if (kind == failing) return fail(Fault::kDeviceLost, "the device is lost");
      return speed(kind == "cpu" ? 40 : 1, 640);
    };
  };
  CHECK(trials.cpu_instead(kGpu, "model", without("vulkan")) == "the device is lost");
  CHECK(trials.cpu_instead(kGpu, "model", without("cpu")).empty());
  CHECK_FALSE(std::filesystem::exists(folder / "device_trials.json"));
}

TEST_CASE("a GPU that is too slow to be measured is tried once") {
  const TempDir folder;
  const DeviceTrials trials(folder / "device_trials.json");
  int tried = 0;
  const DeviceTrials::Measure too_slow = [&](std::string_view) -> Result<ExpectedSpeed> {
    ++tried;
    return fail(Fault::kUnsupported, "it is too slow");
  };
  for (int start = 0; start < 2; ++start) {
    CHECK(trials.cpu_instead(kGpu, "model", too_slow) == "it is too slow");
    CHECK(tried == 1);
  }
}

TEST_CASE("damaged times are measured anew") {
  const TempDir folder;
  const auto file = folder / "device_trials.json";
  const DeviceTrials trials(file);
  Devices slow{speed(20, 128), speed(40, 640)};
  std::size_t measured = 0;
  for (const char* text :
       {"", "[1]", "{\"vulkan Shared Graphics 620; model\": 7}",
        "{\"vulkan Shared Graphics 620; model\": {\"gpuMs\": 1, \"cpuMs\": -1}}",
        "{\"vulkan Shared Graphics 620; model\": {\"gpuMs\": \"1\", \"cpuMs\": 9}}",
        "{\"vulkan Shared Graphics 620; model\": {\"refused\": 7}}"}) {
    std::ofstream(file) << text;
    CHECK_FALSE(trials.cpu_instead(kGpu, "model", slow.measure()).empty());
    CHECK(slow.measured.size() == (measured += 2));
  }
}

TEST_CASE("the CPU's own side of a trial is measured with the model") {
  const auto model = opened(tiny_model({}));
  engine::DeviceWish wish;
  wish.threads = 1;
  const auto speed = service::measure_of(*model, wish)("cpu");
  REQUIRE(speed);
  CHECK(speed->device_kind == "cpu");
  CHECK(service::answer_ms(*speed) > 0);
  const std::string setting = service::trial_setting(*model, wish);
  wish.threads = 2;
  CHECK(service::trial_setting(*model, wish) != setting);
}

}  // namespace efimd::test
