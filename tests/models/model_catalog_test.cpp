#include "daemon/models/model_catalog.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include "daemon/models/chosen_model.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
namespace fs = std::filesystem;

namespace {

/// A folder of the user's own, a bundled one, and files in them that begin like models.
struct Places {
  test::TempDir root;
  service::ModelPlaces places{root / "own", {root / "share", root / "source"}};
  service::Config config;

  Places() {
    for (const char* name : {"own", "share", "source"}) fs::create_directory(root / name);
    config.file = root / "config" / "config.toml";
  }
  fs::path put(const fs::path& name, const std::string& bytes = "GGUF....") {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << bytes;
    return root / name;
  }
  Result<service::ModelChoice> choose(const char* model, const char* source = "config.toml") {
    config.model = model;
    config.model_source = source;
    return service::choose_model(config, places);
  }
};

}  // namespace

TEST_CASE("models are the .gguf files that begin as such, the user's own first") {
  Places places;
  places.put("own/z.gguf");
  places.put("own/a.gguf");
  places.put("own/half.gguf", "GG");
  places.put("own/notes.txt");
  places.put("share/efim-boot.gguf");
  const auto models = service::list_models(places.places);
  REQUIRE(models.size() == 3);
  CHECK(models[0].path.filename() == "a.gguf");
  CHECK(models[1].path.filename() == "z.gguf");
  CHECK(models[1].bytes == 8);
  CHECK_FALSE(models[1].bundled);
  CHECK(models[2].bundled);
}

TEST_CASE("one file that is found in two places is listed once") {
  Places places;
  places.put("share/m.gguf");
  fs::create_hard_link(places.root / "share/m.gguf", places.root / "source/m.gguf");
  CHECK(service::list_models(places.places).size() == 1);
}

TEST_CASE("without a configured model the bundled one is used, installed before source tree") {
  Places places;
  const fs::path source = places.put("source/efim-boot.gguf");
  CHECK(service::choose_model(places.config, places.places)->path == source);
  const fs::path installed = places.put("share/efim-boot.gguf");
  CHECK(service::choose_model(places.config, places.places)->path == installed);
}

TEST_CASE("without any model the error says where was looked and what to do") {
  Places places;
  const auto choice = service::choose_model(places.config, places.places);
  REQUIRE_FALSE(choice);
  CHECK(choice.error().fault == Fault::kNotFound);
  CHECK(choice.error().message().find((places.root / "share").string()) != std::string::npos);
  CHECK(choice.error().remedy.find("config.toml") != std::string::npos);
}

TEST_CASE("a folder that is the user's own and the installed one is named once") {
  Places places;
  places.places.bundled.push_back(places.places.own);
  const std::string message = service::choose_model(places.config, places.places).error().message();
  const std::size_t first = message.find(places.places.own.string());
  REQUIRE(first != std::string::npos);
  CHECK(message.find(places.places.own.string(), first + 1) == std::string::npos);
}

TEST_CASE("a bare name is looked for among the listed models") {
  Places places;
  const fs::path own = places.put("own/mine.gguf");
  CHECK(places.choose("mine.gguf")->path == own);
  CHECK(places.choose("mine.gguf")->reason == "config.toml");
  const auto absent = places.choose("other.gguf");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().message().find("other.gguf") != std::string::npos);
}

TEST_CASE("a file of that name that is no model is named, and not said to be nowhere") {
  Places places;
  const fs::path page = places.put("own/page.gguf", "<html>");
  const auto choice = places.choose("page.gguf");
  REQUIRE(choice);
  CHECK(choice->path == page);
  CHECK(service::list_models(places.places).empty());
}

TEST_CASE("a path is taken as it is, a relative one from the configuration's folder") {
  Places places;
  CHECK(places.choose("/models/x.gguf")->path == "/models/x.gguf");
  CHECK(places.choose("../x.gguf")->path == places.root / "x.gguf");
  CHECK(places.choose("./x.gguf", "EFIMD_MODEL")->path == fs::current_path() / "x.gguf");
}

TEST_CASE("other programs' folders are found by their variables, else by their defaults") {
  const auto folders = [](std::map<std::string, fs::path> variables) {
    std::string text;
    for (const auto& folder : service::shared_folders([&](const char* name) {
           const auto found = variables.find(name);
           return found == variables.end() ? std::nullopt : std::optional(found->second);
         }))
      text += folder.origin + "=" + folder.path.string() + " ";
    return text;
  };
  CHECK(folders({{"HOME", "/h"}}) ==
        "Hugging Face=/h/.cache/huggingface/hub llama.cpp=/h/.cache/llama.cpp "
        "LM Studio=/h/.lmstudio/models LM Studio=/h/.cache/lm-studio/models "
        "Ollama=/h/.ollama/models Ollama=/usr/share/ollama/.ollama/models ");
  CHECK(folders({{"HF_HOME", "/hf"}, {"LLAMA_CACHE", "/l"}, {"OLLAMA_MODELS", "/o"}}) ==
        "Hugging Face=/hf/hub llama.cpp=/l Ollama=/o Ollama=/usr/share/ollama/.ollama/models ");
}

TEST_CASE("models of other programs are listed by their names, and chosen by them") {
  Places places;
  places.places.shared = {
      {"Hugging Face", places.root / "hub", service::SharedFolder::Layout::kFiles},
      {"Ollama", places.root / "ollama", service::SharedFolder::Layout::kOllama}};
  places.put("hub/blobs/abc");
  fs::create_directories(places.root / "hub/models--q--c/snapshots/1");
  const fs::path linked = places.root / "hub/models--q--c/snapshots/1/coder.gguf";
  fs::create_symlink(places.root / "hub/blobs/abc", linked);
  places.put("hub/models--q--c/snapshots/1/big-00001-of-00002.gguf");
  places.put("ollama/blobs/sha256-00ff");
  const std::string manifest =
      R"({"layers": [{"mediaType": "application/vnd.ollama.image.license", "digest": "sha256:11"},
                     {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:00ff"}]})";
  places.put("ollama/manifests/registry.ollama.ai/library/qwen2.5-coder/1.5b", manifest);
  const auto models = service::list_models(places.places);
  REQUIRE(models.size() == 2);
  CHECK(models[0].path == linked);
  CHECK(models[0].name == "coder.gguf");
  CHECK(models[0].origin == "Hugging Face");
  CHECK(models[0].bytes == 8);
  CHECK(models[1].name == "qwen2.5-coder:1.5b");
  CHECK(models[1].path == places.root / "ollama/blobs/sha256-00ff");
  CHECK(places.choose("qwen2.5-coder:1.5b")->path == models[1].path);
  CHECK(places.choose("coder.gguf")->path == linked);
}

TEST_CASE("manifests that are none, or lead outside, name no model") {
  Places places;
  places.places.shared = {
      {"Ollama", places.root / "ollama", service::SharedFolder::Layout::kOllama}};
  places.put("outside.gguf");
  const auto manifest = [](const std::string& digest) {
    return R"({"layers": [3, {"mediaType": "application/vnd.ollama.image.model", "digest": ")" +
           digest + "\"}]}";
  };
  int tag = 0;
  for (const std::string& bytes :
       {std::string("not JSON"), std::string("[]"), std::string(R"({"layers": 3})"),
        manifest("sha256:../../outside.gguf"), manifest("sha256:77"), manifest("77")})
    places.put("ollama/manifests/registry.ollama.ai/library/x/" + std::to_string(tag++), bytes);
  CHECK(service::list_models(places.places).empty());
}

TEST_CASE(
    "the model that was chosen for good decides over the configuration, not the environment") {
  Places places;
  service::Paths paths;
  paths.state_dir = places.root / "state";
  service::Config config;
  config.model = "configured.gguf";
  config.model_source = "config.toml";
  service::take_chosen_model(config, paths);
  CHECK(config.model == "configured.gguf");
  REQUIRE(service::choose_model_for_good(paths, "/m/chosen.gguf"));
  service::Config environment = config;
  environment.model_source = "EFIMD_MODEL";
  service::take_chosen_model(environment, paths);
  CHECK(environment.model == "configured.gguf");
  service::take_chosen_model(config, paths);
  CHECK(config.model == "/m/chosen.gguf");
  CHECK(config.model_source == "efimd model use");
  REQUIRE(service::forget_chosen_model(paths));
  REQUIRE(service::forget_chosen_model(paths));
  service::Config plain;
  service::take_chosen_model(plain, paths);
  CHECK_FALSE(plain.model);
  places.put("state/model", "no path\n");
  service::take_chosen_model(plain, paths);
  CHECK_FALSE(plain.model);
}

TEST_CASE("models are in the user's folder, also under VS Code's snap") {
  const auto own = [](const char* data, const char* kept) {
    setenv("XDG_DATA_HOME", data, 1);
    if (kept != nullptr) setenv("XDG_DATA_HOME_VSCODE_SNAP_ORIG", kept, 1);
    const fs::path found = service::find_model_places().own;
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_DATA_HOME_VSCODE_SNAP_ORIG");
    return found;
  };
  const fs::path home = std::getenv("HOME");
  const char* snap = "/home/me/snap/code/190/.local/share";
  CHECK(own(snap, "") == home / ".local/share/efimd/models");
  CHECK(own(snap, "/data") == "/data/efimd/models");
  CHECK(own("/mine", "/data") == "/mine/efimd/models");
  CHECK(own(snap, nullptr) == fs::path(snap) / "efimd/models");
}
