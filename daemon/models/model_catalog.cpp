#include "daemon/models/model_catalog.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "daemon/models/offered_models.h"

namespace efimd::service {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kBundledName = "efim-boot.gguf";
/// Entries of one folder that are looked at; the rest of a huge folder is not models.
constexpr std::size_t kModelsMax = 1000;

/// The models of one folder by name; a folder that is not there has none.
std::vector<ModelFile> models_in(const fs::path& folder, bool bundled) {
  std::vector<ModelFile> found;
  std::error_code error;
  std::size_t looked_at = 0;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator() && looked_at < kModelsMax;
       entry.increment(error), ++looked_at) {
    std::error_code unreadable;
    if (entry->path().extension() != ".gguf" || !entry->is_regular_file(unreadable)) continue;
    if (!has_gguf_magic(entry->path())) continue;
    found.push_back({entry->path(), entry->file_size(unreadable), bundled,
                     entry->path().filename().string(), bundled ? "bundled" : "efimd"});
  }
  std::sort(found.begin(), found.end(),
            [](const ModelFile& a, const ModelFile& b) { return a.path < b.path; });
  return found;
}

/// `~/x` is x in the home folder.
fs::path expanded(const fs::path& path) {
  if (path.native().rfind("~/", 0) != 0) return path;
  const auto home = absolute_variable("HOME");
  return home ? *home / path.native().substr(2) : path;
}

std::string places_text(const ModelPlaces& places) {
  std::vector<fs::path> folders = {places.own};
  folders.insert(folders.end(), places.bundled.begin(), places.bundled.end());
  for (const SharedFolder& folder : places.shared) folders.push_back(folder.path);
  std::string text;
  for (auto folder = folders.begin(); folder != folders.end(); ++folder)
    if (std::find(folders.begin(), folder, *folder) == folder)
      text += (text.empty() ? "" : ", ") + folder->string();
  return text;
}

Result<ModelChoice> configured(const Config& config, const ModelPlaces& places) {
  const fs::path path = expanded(*config.model);
  std::error_code error;
  if (path.has_parent_path()) {
    const fs::path base =
        config.model_source == "EFIMD_MODEL" ? fs::current_path(error) : config.file.parent_path();
    return ModelChoice{(path.is_absolute() ? path : base / path).lexically_normal(),
                       config.model_source};
  }
  const std::vector<ModelFile> models = list_models(places);
  for (const ModelFile& model : models)
    if (model.name == path) return ModelChoice{model.path, config.model_source};
  const auto offers = offered_models(places.bundled);
  const OfferedModel* const offered = offers ? find_offered(*offers, path.native()) : nullptr;
  for (const ModelFile& model : models)
    if (offered != nullptr && model.name == fs::path(offered->file).filename())
      return ModelChoice{model.path, config.model_source};
  // What is no model is not listed; opening it says what it is instead.
  if (fs::exists(places.own / path, error))
    return ModelChoice{places.own / path, config.model_source};
  return fail(
      Fault::kNotFound,
      config.model_source + ": no model named " + path.string() + " in " + places_text(places),
      offered != nullptr ? "get it with `efimd model get " + offered->name + "`"
                         : "give its whole path, or see `efimd model list`");
}

/// Of a program that runs where it was built; an installed one has none. No folder of the build is in
/// the program, where anybody could put a model later.
std::optional<fs::path> source_tree_above(const fs::path& program) {
  constexpr int kFoldersMax = 7;
  fs::path folder = program.parent_path();
  for (int i = 0; i < kFoldersMax && folder != folder.parent_path(); ++i) {
    std::error_code error;
    if (fs::is_regular_file(folder / "CMakePresets.json", error) &&
        fs::is_regular_file(folder / "models" / "efim-boot.gguf", error))
      return folder;
    folder = folder.parent_path();
  }
  return std::nullopt;
}

}  // namespace

std::optional<fs::path> absolute_variable(const char* name) {
  const char* value = std::getenv(name);
  // VS Code's snap gives what it starts another XDG_DATA_HOME, of this version of its own, and keeps
  // the user's.
  const char* kept = std::getenv((std::string(name) + "_VSCODE_SNAP_ORIG").c_str());
  if (value != nullptr && kept != nullptr &&
      std::string_view(value).find("/snap/") != std::string_view::npos)
    value = kept;
  if (value == nullptr || *value != '/') return std::nullopt;
  return fs::path(value);
}

ModelPlaces find_model_places() {
  ModelPlaces places;
  if (const auto data = absolute_variable("XDG_DATA_HOME"))
    places.own = *data / "efimd" / "models";
  else if (const auto home = absolute_variable("HOME"))
    places.own = *home / ".local" / "share" / "efimd" / "models";
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    places.bundled.push_back(
        (program.parent_path() / ".." / "share" / "efimd" / "models").lexically_normal());
    if (const auto source = source_tree_above(program))
      places.bundled.push_back(*source / "models");
  }
  places.shared = shared_folders(absolute_variable);
  return places;
}

std::vector<ModelFile> list_models(const ModelPlaces& places) {
  std::vector<ModelFile> models = models_in(places.own, false);
  const auto add = [&](std::vector<ModelFile> found) {
    for (ModelFile& model : found) {
      const bool seen = std::any_of(models.begin(), models.end(), [&](const ModelFile& known) {
        std::error_code error;
        return fs::equivalent(known.path, model.path, error);
      });
      if (!seen) models.push_back(std::move(model));
    }
  };
  for (const fs::path& place : places.bundled) add(models_in(place, true));
  for (const SharedFolder& folder : places.shared) add(models_in_shared(folder));
  return models;
}

Result<ModelChoice> choose_model(const Config& config, const ModelPlaces& places) {
  if (config.model) return configured(config, places);
  for (const fs::path& place : places.bundled)
    if (const fs::path file = place / kBundledName; has_gguf_magic(file))
      return ModelChoice{file, "the bundled model, none is configured"};
  return fail(Fault::kNotFound,
              "no model is configured and the bundled " + std::string(kBundledName) +
                  " is not in " + places_text(places),
              "install efimd again, or set `model.file` in " + config.file.string());
}

}  // namespace efimd::service
