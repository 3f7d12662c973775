// What `efimd doctor` says of what it found.
#include "daemon/cli/commands/doctor.h"

#include <catch2/catch.hpp>

namespace efimd::test {

using service::Finding;
using service::finding_of;
using Level = Finding::Level;

TEST_CASE("doctor: to have no GPU is a fault only where the configuration names it") {
  const engine::FoundDevice none{"vulkan", false, false, "no GPU", "install a driver"};
  CHECK(finding_of(none, "auto").level == Level::kGood);
  CHECK(finding_of(none, "auto").what == "none: no GPU");
  CHECK(finding_of(none, "auto").remedy.empty());
  CHECK(finding_of(none, "vulkan").level == Level::kWrong);
  CHECK(finding_of(none, "vulkan").remedy == "install a driver");
}

TEST_CASE(
    "doctor: a GPU that the user may not open comes with what to do, unless another is named") {
  const engine::FoundDevice refused{"vulkan", false, true, "no GPU that this user may open",
                                    "usermod"};
  CHECK(finding_of(refused, "auto").level == Level::kNote);
  CHECK(finding_of(refused, "auto").remedy == "usermod");
  CHECK(finding_of(refused, "vulkan").level == Level::kWrong);
  CHECK(finding_of(refused, "cpu").level == Level::kGood);
  CHECK(finding_of(refused, "cpu").remedy.empty());
}

}  // namespace efimd::test
