#include "daemon/cli/setup/machine_steps.h"

#include <fmt/format.h>

#include <algorithm>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/setup/programs.h"
#include "daemon/config/amounts.h"
#include "daemon/config/this_system.h"
#include "daemon/models/model_catalog.h"
#include "daemon/models/recommend.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

std::string speed_text(const JudgedModel& judged) {
  return fmt::format("{:.0f} tokens/s, a keystroke's answer after {:.0f} ms",
                     judged.speed.generation_tokens_per_s, judged.speed.first_answer_ms);
}

Result<void> must_end_well(const std::vector<std::string>& words) {
  const auto status = run_shown(words);
  if (!status) return tl::unexpected(status.error());
  if (*status == 0) return {};
  return fail(Fault::kIo, fmt::format("{} ended with {}", fmt::join(words, " "), *status),
              "see its message above");
}

Step model_step(const SetupPlaces& places, const Recommendation& found,
                const std::vector<ModelFile>& here) {
  if (!found.chosen) return done_step("Model", "none of the list fits here; the bundled one stays");
  const JudgedModel& best = found.models[*found.chosen];
  const std::string file = fs::path(best.model.file).filename().string();
  const bool is_here = std::ranges::find(here, file, &ModelFile::name) != here.end();
  Step step{Step::State::kOffer, "Model", "", "", "", {}};
  step.what = fmt::format("{} {} ({}, {}): {}", is_here ? "use" : "get and use", best.model.name,
                          bytes_text(static_cast<double>(best.model.bytes)), best.model.license,
                          speed_text(best));
  if (!best.fast) step.what += "; " + best.reason;
  const fs::path folder = places.program.parent_path();
  std::vector<std::string> words =
      is_here ? std::vector<std::string>{places.program, "model", "use", best.model.name}
              : std::vector<std::string>{folder / "efimd-get", "--use", "--yes",
                                         "--no-speed",         "--",    best.model.name};
  step.apply = [words = std::move(words)] { return must_end_well(words); };
  return step;
}

}  // namespace

std::optional<Step> configured_model_step(const Config& config) {
  if (!config.model) return std::nullopt;
  return done_step(
      "Model", fmt::format("{} is used, as {} says", config.model->string(), config.model_source));
}

MachineLook look_at_machine(const Config& config, const SetupPlaces& places) {
  const std::uint64_t memory = memory_bytes();
  const ModelPlaces model_places = find_model_places();
  const auto offered = offered_models(model_places.bundled);
  const auto devices = machine_speed(devices_here(
      config, offered ? bytes_of_fitting(*offered, memory) : std::vector<std::uint64_t>()));
  MachineLook look{fmt::format("  memory  {}\n", bytes_text(static_cast<double>(memory))), {}};
  for (const DeviceRates& device : devices)
    look.text +=
        fmt::format("  {:<6}  {}: reads {}/s of 8-bit weights{}\n", device.kind, device.name,
                    bytes_text(device.eight_bits.bytes_per_s), limit_text(device));
  look.model =
      offered ? model_step(places, recommend(*offered, devices, memory), list_models(model_places))
              : done_step("Model", offered.error().message());
  return look;
}

Step autostart_step(const Paths& paths, Direction direction) {
  const AutostartState state = autostart_state();
  const bool adds = direction == Direction::kAdd;
  if (!state.possible && (adds || !state.enabled))
    return done_step("Autostart",
                     "no service manager of yours runs here; editors start the daemon");
  if (state.enabled == adds) return done_step("Autostart", adds ? "is enabled" : "is not enabled");
  const auto what = adds ? CommandLine::Autostart::kEnable : CommandLine::Autostart::kDisable;
  return {Step::State::kOffer,
          "Autostart",
          adds ? "let systemd start the daemon at an editor's first call" : "disable it",
          "",
          "",
          [paths, what]() -> Result<void> {
            if (run_autostart(paths, what) == 0) return {};
            return fail(Fault::kIo, "autostart could not be changed", "see its message above");
          }};
}

}  // namespace efimd::service
