#include "daemon/completion/pace.h"

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/scripted_engine.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

prompt::StepCosts costs_at(double tokens_per_s) {
  prompt::StepCosts costs;
  costs.points = {{256, 256 * 1000 / tokens_per_s}};
  return costs;
}

test::ScriptedEngine engine_on(const std::string& kind) {
  auto script = std::make_shared<test::EngineScript>();
  script->device_kind = kind;
  script->window_tokens = script->ample_tokens = 40'000;
  return test::ScriptedEngine(script);
}

/// A start at this speed.
Budgets start(const engine::Engine& engine, double tokens_per_s, const PaceKeeper* keeper) {
  Budgets budgets;
  budgets.costs = costs_at(tokens_per_s);
  set_pace(budgets, engine, {}, keeper);
  return budgets;
}

}  // namespace

TEST_CASE("A-10: sizes of prompts follow the speed") {
  CHECK(pace_for(costs_at(10)) == Pace{512, 96});
  CHECK(pace_for(costs_at(1023)) == Pace{512, 96});
  CHECK(pace_for(costs_at(1024)) == Pace{2048, 96});
  CHECK(pace_for(costs_at(1280)) == Pace{2048, 192});
  CHECK(pace_for(costs_at(2560)) == Pace{2048, 384});
  CHECK(pace_for(costs_at(1e9)) == Pace{8192, 768});
  CHECK(pace_for({}) == Pace{512, 96});
}

TEST_CASE("A-4: a size that was chosen stays down to half of its speed") {
  const Pace kept{2048, 384};
  for (const double speed : {1290.0, 2000.0, 2560.0, 3500.0})
    CHECK(pace_for(costs_at(speed), kept) == kept);
  CHECK(pace_for(costs_at(1270), kept) == Pace{2048, 96});
  CHECK(pace_for(costs_at(500), kept) == Pace{512, 96});
  CHECK(pace_for(costs_at(5130), kept) == Pace{8192, 768});         // what is measured is there
  CHECK(pace_for(costs_at(2560), {1000, 400}) == Pace{2048, 384});  // no sizes of today
  CHECK(pace_for(costs_at(1e9), {512, 96}) == Pace{8192, 768});
  CHECK(pace_for(costs_at(1), {8192, 768}) == Pace{512, 96});
}

TEST_CASE("A-4: starts at a border choose the same, each device and model for itself") {
  const test::TempDir folder;
  const PaceKeeper keeper(folder / "state/pace");
  const auto cpu = engine_on("cpu");
  for (const double speed : {2570.0, 2550.0, 2000.0, 3000.0})
    CHECK(start(cpu, speed, &keeper).near_tokens_max == 384);
  CHECK(start(cpu, 2550, nullptr).near_tokens_max == 192);
  const auto other = engine_on("vulkan");
  CHECK(start(other, 2550, &keeper).near_tokens_max == 192);
  CHECK(start(other, 1290, &keeper).near_tokens_max == 192);
  CHECK(start(cpu, 2550, &keeper).near_tokens_max == 384);
  // Half of the speed and less is another machine's, until it measures more again.
  CHECK(start(cpu, 500, &keeper).prompt_tokens_max == 512);
  CHECK(start(cpu, 1000, &keeper).prompt_tokens_max == 512);
  CHECK(keeper.find(cpu) == Pace{512, 96});
  CHECK(PaceKeeper(folder / "state/pace").find(other) == Pace{2048, 192});
}

TEST_CASE("a file of sizes that is damaged or cannot be written costs what it keeps") {
  const test::TempDir folder;
  const std::filesystem::path file = folder / "pace";
  const auto cpu = engine_on("cpu");
  for (const std::string text : {"", "efimd pace 2\n", "efimd pace 1\nx y z\n",
                                 "efimd pace 1\n\xff\xfe 1 99999999999999\n"}) {
    std::ofstream(file, std::ios::trunc) << text;
    const PaceKeeper keeper(file);
    CHECK_FALSE(keeper.find(cpu));
    CHECK(start(cpu, 2570, &keeper).near_tokens_max == 384);
    CHECK(start(cpu, 2550, &keeper).near_tokens_max == 384);
  }
  const PaceKeeper nowhere(file / "below" / "pace");
  CHECK(start(cpu, 2570, &nowhere).near_tokens_max == 384);
  CHECK_FALSE(nowhere.find(cpu));
}

TEST_CASE("no more sizes are kept than of so many devices and models") {
  const test::TempDir folder;
  const PaceKeeper keeper(folder / "pace");
  for (int i = 0; i < 100; ++i) keeper.keep(engine_on("device " + std::to_string(i)), {512, 96});
  CHECK_FALSE(keeper.find(engine_on("device 35")));
  CHECK(keeper.find(engine_on("device 36")));
  CHECK(keeper.find(engine_on("device 99")));
}
