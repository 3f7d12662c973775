#include "daemon/service/model_catalog.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

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

TEST_CASE("a bare name is looked for among the listed models") {
  Places places;
  const fs::path own = places.put("own/mine.gguf");
  CHECK(places.choose("mine.gguf")->path == own);
  CHECK(places.choose("mine.gguf")->reason == "config.toml");
  const auto absent = places.choose("other.gguf");
  REQUIRE_FALSE(absent);
  CHECK(absent.error().message().find("other.gguf") != std::string::npos);
}

TEST_CASE("a path is taken as it is, a relative one from the configuration's folder") {
  Places places;
  CHECK(places.choose("/models/x.gguf")->path == "/models/x.gguf");
  CHECK(places.choose("../x.gguf")->path == places.root / "x.gguf");
  CHECK(places.choose("./x.gguf", "EFIMD_MODEL")->path == fs::current_path() / "x.gguf");
}
