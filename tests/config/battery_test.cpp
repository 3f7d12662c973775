#include <catch2/catch.hpp>
#include <fstream>

#include "daemon/config/this_system.h"
#include "tests/support/temp_dir.h"

using namespace efimd;

namespace {

/// A power supply class as Linux shows it.
struct Supplies {
  void put(const std::string& name, const std::string& file, const std::string& value) const {
    std::filesystem::create_directories(folder / name);
    std::ofstream(folder.path() / name / file) << value << '\n';
  }
  bool on_battery() const { return service::on_battery(folder.path()); }
  test::TempDir folder;
};

}  // namespace

TEST_CASE("a machine without a battery, or that says nothing of it, is not on one") {
  Supplies supplies;
  CHECK_FALSE(supplies.on_battery());
  CHECK_FALSE(service::on_battery(supplies.folder / "nowhere"));
  supplies.put("AC", "type", "Mains");
  supplies.put("AC", "online", "1");
  CHECK_FALSE(supplies.on_battery());
}

TEST_CASE("a battery that is discharged without mains is what the machine runs on") {
  Supplies supplies;
  supplies.put("AC", "type", "Mains");
  supplies.put("AC", "online", "0");
  supplies.put("BAT0", "type", "Battery");
  supplies.put("BAT0", "status", "Discharging");
  CHECK(supplies.on_battery());
  supplies.put("AC", "online", "1");
  CHECK_FALSE(supplies.on_battery());
  supplies.put("AC", "online", "0");
  supplies.put("BAT0", "status", "Full");
  CHECK_FALSE(supplies.on_battery());
}
