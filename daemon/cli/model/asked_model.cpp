#include "daemon/cli/model/asked_model.h"

#include <strings.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <vector>

#include "daemon/models/hub_folder.h"
#include "daemon/models/model_catalog.h"
#include "daemon/models/speed/machine_speed.h"

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

}  // namespace

Result<std::filesystem::path> find_asked_model(const Config& config, const std::string& asked) {
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

}  // namespace efimd::service
