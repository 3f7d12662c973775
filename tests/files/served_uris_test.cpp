#include "daemon/files/served_uris.h"

#include <catch2/catch.hpp>
#include <string>

using efimd::service::ServedUris;

TEST_CASE("of too many URIs those that were used longest ago are let go") {
  ServedUris uris(10 * (ServedUris::kEntryBytes + 5));
  for (int i = 0; i < 10; ++i) CHECK(uris.use("uri:" + std::to_string(i)));
  CHECK_FALSE(uris.take_excess());
  CHECK_FALSE(uris.use("uri:0"));
  CHECK(uris.use("uri:a"));
  CHECK(uris.take_excess() == "uri:1");
  CHECK_FALSE(uris.take_excess());
  uris.erase("uri:2");
  uris.erase("uri:1");
  CHECK(uris.size() == 9);
  CHECK(uris.all().contains("uri:0"));
  CHECK(uris.use("uri:1"));
  // One that is longer than all may be is kept alone.
  CHECK(uris.use(std::string(100'000, 'x')));
  while (uris.take_excess()) continue;
  CHECK(uris.size() == 1);
}
