#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "daemon/config/config.h"

namespace efimd::service {

TEST_CASE("the README's table of configuration keys is the one that the daemon reads") {
  std::ifstream file(EFIMD_README);
  REQUIRE(file.is_open());
  const std::string readme(std::istreambuf_iterator<char>(file), {});
  const std::string table = config_table();
  INFO("the README must contain:\n" << table);
  CHECK(readme.find(table) != std::string::npos);
}

}  // namespace efimd::service
