#include "daemon/files/packages.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

using namespace efimd;
using service::package_name;

TEST_CASE("a manifest names its package as imports write it") {
  CHECK(package_name("go.mod", "// a\n\nmodule example.org/shop/v2 // deprecated\ngo 1.23\n") ==
        "example.org/shop/v2");
  CHECK(package_name("go.mod", "module\t\"shop\"\r\n") == "shop");
  CHECK(package_name("Cargo.toml",
                     "[workspace]\nname = \"no\"\n[package]\nname = \"shop-match\" # a\nversion = "
                     "\"1\"\n[[bin]]\nname = \"tool\"\n") == "shop_match");
  CHECK(package_name("Cargo.toml", "[package]\nname=\"a\"\n[lib]\nname = 'b'\n[dependencies]\n") ==
        "b");
  CHECK(package_name("package.json", "{\"private\": true, \"name\": \"@shop/ui\"}") == "@shop/ui");
}

TEST_CASE("a manifest that is damaged or names nothing has no package") {
  for (const char* text : {"", "module", "module ", "[package]", "name = \"a\"", "{", "[1]",
                           "{\"name\": 1}", "[package]\nname = \"a", "[package]\nname"})
    for (const char* file : {"go.mod", "Cargo.toml", "package.json"}) {
      INFO(file << ": " << text);
      CHECK(package_name(file, text).empty());
    }
  CHECK(package_name("setup.cfg", "module a").empty());
}

TEST_CASE("a project's packages are those of its manifests, as many as the limit says") {
  const test::TempDir folder;
  std::vector<std::string> files = {(folder.path() / "none/go.mod").string()};
  for (std::size_t at = 0; at < service::kPackagesMax + 3; ++at) {
    const auto package = folder.path() / std::to_string(at);
    std::filesystem::create_directories(package);
    std::ofstream(package / "go.mod") << "module m" << at << "\n";
    files.push_back((package / "go.mod").string());
  }
  const auto packages = service::packages_of(files);
  REQUIRE(packages.size() == service::kPackagesMax);
  CHECK(packages.front() == context::Package{"m0", files[1]});
}
