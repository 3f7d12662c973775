#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/cli/commands/commands.h"
#include "daemon/client/client.h"
#include "daemon/config/config.h"
#include "daemon/config/printable.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/hub_folder.h"
#include "daemon/models/model_catalog.h"
#include "daemon/models/speed/machine_speed.h"
#include "engine/model/model.h"
#include "lsp/json_rpc.h"

// The daemon that runs is asked to finish. Each editor's `efimd lsp` keeps the open documents,
// starts the next daemon with the new model and hands them over. Until it is loaded, requests are
// answered with that reason. The model is opened here first, so that one that cannot run changes
// nothing.

namespace efimd::service {

namespace {

/// Of ORGANISATION/REPOSITORY[:TYPE], as `efimd model get` takes it, the models in the hub's cache.
std::vector<ModelFile> models_of(const std::string& asked, const ModelPlaces& places) {
  const std::size_t colon = asked.find(':');
  const std::string type = colon == std::string::npos ? "" : asked.substr(colon + 1);
  const std::filesystem::path folder = repository_folder(asked.substr(0, colon));
  std::vector<ModelFile> models = list_models(places);
  std::erase_if(models, [&](const ModelFile& model) {
    const bool has_type = type.empty() || model.name == type ||
                          ::strcasecmp(weights_in_name(model.name).c_str(), type.c_str()) == 0;
    return !has_type || std::ranges::find(model.path, folder) == model.path.end();
  });
  return models;
}

/// By path, by a listed name, by the name of a file in the current folder, else by its repository.
Result<std::filesystem::path> find_model(const Config& config, const std::string& asked) {
  Config wanted = config;
  wanted.model = asked;
  wanted.model_source = "EFIMD_MODEL";  // a relative path is meant from here
  const ModelPlaces places = find_model_places();
  auto choice = choose_model(wanted, places);
  std::error_code error;
  if (choice && std::filesystem::exists(choice->path, error)) return std::move(choice->path);
  const std::filesystem::path here = std::filesystem::absolute(asked, error).lexically_normal();
  if (std::filesystem::is_regular_file(here, error)) return here;
  if (auto models = models_of(asked, places); models.size() == 1) {
    return std::move(models.front().path);
  } else if (models.size() > 1) {
    std::string names;
    for (const ModelFile& model : models) names += (names.empty() ? "" : ", ") + model.name;
    return fail(Fault::kBadInput, asked + ": several of its models are here", "name one: " + names);
  }
  if (choice) return std::move(choice->path);  // opening it says what is wrong
  choice.error().what.erase(0, wanted.model_source.size() + 2);
  return tl::unexpected(choice.error());
}

void print(const CommandLine& line, const std::filesystem::path& path, std::string_view daemon) {
  if (line.json)
    fmt::print("{}\n", lsp::json_text({{"path", path.string()}, {"daemon", daemon}}));
  else
    fmt::print("in use: {} ({})\n", printable(path.string()), daemon);
}

}  // namespace

int run_model_use(const Paths& paths, const CommandLine& line) {
  Config config = load_config(paths.config_file);
  if (config.model_source == "EFIMD_MODEL")
    return failed({Fault::kUnsupported, "EFIMD_MODEL is set and decides", "unset it"});
  if (line.model_configured) {
    if (auto done = forget_chosen_model(paths); !done) return failed(done.error());
  } else {
    const auto path = find_model(config, line.model_file.string());
    if (!path) return failed(path.error());
    const auto model = engine::Model::open(*path, config.fim);
    if (!model) return failed(model.error());
    if (auto done = choose_model_for_good(paths, *path); !done) return failed(done.error());
  }
  take_chosen_model(config, paths);
  const auto choice = choose_model(config, find_model_places());
  if (!choice) return failed(choice.error());
  const auto stopped = stop_daemon(paths);
  if (!stopped) return failed(stopped.error());
  print(line, choice->path,
        *stopped == Stopped::kFinished ? "editors start the daemon anew, with their documents"
                                       : "no daemon was running");
  return 0;
}

}  // namespace efimd::service
