#include "daemon/models/recommend.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/cli/commands/table.h"
#include "daemon/config/config.h"
#include "daemon/config/this_system.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/model_catalog.h"
#include "lsp/json_rpc.h"

namespace efimd::service {

using lsp::Json;

namespace {

/// What was asked of the machine, and what is on it.
struct Machine {
  std::vector<DeviceRates> devices;
  std::uint64_t memory = 0;
  std::vector<ModelFile> models;
  bool only_bundled = false;  ///< nothing but the bundled model is in use, and none is configured
};

/// The file of an offered model, where it is here already; empty otherwise.
std::string path_here(const Machine& machine, const OfferedModel& offered) {
  const auto found = std::ranges::find(
      machine.models, std::filesystem::path(offered.file).filename().string(), &ModelFile::name);
  return found == machine.models.end() ? "" : found->path.string();
}

Json model_json(const Machine& machine, const JudgedModel& judged) {
  const OfferedModel& model = judged.model;
  return {{"name", model.name},
          {"repository", model.repository},
          {"file", model.file},
          {"bytes", model.bytes},
          {"license", model.license},
          {"restricted", model.restricted},
          {"contextTokens", model.context_tokens},
          {"goodFor", model.good_for},
          {"memoryBytes", judged.memory_bytes},
          {"fits", judged.fits},
          {"fast", judged.fast},
          {"device", judged.speed.device_kind},
          {"generationTokensPerS", judged.speed.generation_tokens_per_s},
          {"promptTokensPerS", judged.speed.prompt_tokens_per_s},
          {"firstAnswerMs", judged.speed.first_answer_ms},
          {"path", path_here(machine, model)},
          {"reason", judged.reason}};
}

Json devices_json(const std::vector<DeviceRates>& devices) {
  Json list = Json::array();
  for (const DeviceRates& device : devices)
    list.push_back(
        {{"kind", device.kind},
         {"name", device.name},
         {"modelBytesMax", device.weight_bytes_max == 0 ? Json() : Json(device.weight_bytes_max)},
         {"bytesPerS8", device.eight_bits.bytes_per_s},
         {"parametersPerS8", device.eight_bits.parameters_per_s},
         {"bytesPerS4", device.four_bits.bytes_per_s},
         {"parametersPerS4", device.four_bits.parameters_per_s}});
  return list;
}

Json recommendation_json(const Machine& machine, const Recommendation& found) {
  Json models = Json::array();
  for (const JudgedModel& judged : found.models) models.push_back(model_json(machine, judged));
  return {{"memoryBytes", machine.memory},
          {"devices", devices_json(machine.devices)},
          {"onlyBundled", machine.only_bundled},
          {"recommended", found.chosen ? models[*found.chosen] : Json()},
          {"models", models}};
}

std::string machine_text(const Machine& machine) {
  std::string text = fmt::format("memory  {}\n", bytes_text(static_cast<double>(machine.memory)));
  for (const DeviceRates& device : machine.devices)
    text += fmt::format("{:<6}  {}: reads {}/s of 8-bit weights, {}/s of 4-bit weights{}\n",
                        device.kind, device.name, bytes_text(device.eight_bits.bytes_per_s),
                        bytes_text(device.four_bits.bytes_per_s), limit_text(device));
  return text;
}

std::string recommendation_text(const Machine& machine, const Recommendation& found) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < found.models.size(); ++i) {
    const JudgedModel& judged = found.models[i];
    rows.push_back({found.chosen == i ? "*" : "", judged.model.name,
                    bytes_text(static_cast<double>(judged.model.bytes)),
                    fmt::format("{:.0f}", judged.speed.prompt_tokens_per_s),
                    fmt::format("{:.1f}", judged.speed.generation_tokens_per_s),
                    fmt::format("{:.0f} ms", judged.speed.first_answer_ms), judged.model.license,
                    judged.reason});
  }
  std::string text = machine_text(machine) + "\n" +
                     table({{"", Align::kLeft},
                            {"model", Align::kLeft},
                            {"size"},
                            {"prompt, tokens/s"},
                            {"generation, tokens/s"},
                            {"answer"},
                            {"licence", Align::kLeft},
                            {"", Align::kLeft}},
                           rows) +
                     "\n";
  if (!found.chosen) return text + "recommended: none fits into this machine's memory\n";
  const JudgedModel& best = found.models[*found.chosen];
  text += fmt::format("recommended: {}, {}.\nGood for {}.\n", best.model.name, best.reason,
                      best.model.good_for);
  const std::string path = path_here(machine, best.model);
  return text + (path.empty() ? fmt::format("efimd model get {} --use\n", best.model.name)
                              : fmt::format("It is here: efimd model use {}\n", best.model.name));
}

}  // namespace

int run_model_recommend(const Paths& paths, const CommandLine& line) {
  const ModelPlaces places = find_model_places();
  const auto offered = offered_models(places.bundled);
  if (!offered) return failed(offered.error());
  const Config config = config_in_force(paths);
  Machine machine;
  machine.memory = memory_bytes();
  machine.models = list_models(places);
  machine.only_bundled = !config.model;
  machine.devices = machine_speed(devices_here(config, bytes_of_fitting(*offered, machine.memory)));
  const Recommendation found = recommend(*offered, machine.devices, machine.memory);
  if (line.json)
    fmt::print("{}\n", lsp::json_text(recommendation_json(machine, found)));
  else
    fmt::print("{}", recommendation_text(machine, found));
  return found.chosen ? 0
                      : failed({Fault::kNoMemory, "no model of the list fits here",
                                "the bundled model stays in use"});
}

}  // namespace efimd::service
