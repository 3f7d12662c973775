#include "daemon/config/http_state.h"

#include <catch2/catch.hpp>

#include "daemon/config/local_socket.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

TEST_CASE(
    "an efimd-http that has told its trouble does not run, also before its process has ended") {
  const test::TempDir folder;
  Paths paths;
  paths.runtime_dir = paths.state_dir = folder.path();
  HttpConfig config;
  config.enable = true;

  auto lock = LockFile::try_lock(paths.http_lock());
  REQUIRE(lock);
  REQUIRE(*lock);
  note_http(paths, std::nullopt);
  CHECK(http_text(http_state(paths), config) == "starting");
  note_http(paths, 8012);
  CHECK(http_state(paths).runs);
  CHECK(http_state(paths).port == 8012);
  note_http(paths, tl::unexpected(Error{Fault::kIo, "port 8012 cannot be used", ""}));
  CHECK_FALSE(http_state(paths).runs);
  CHECK(http_text(http_state(paths), config) == "not running: port 8012 cannot be used");
}
