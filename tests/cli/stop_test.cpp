// efimd stop beside others that ask the same daemon.
#include <sys/socket.h>

#include <catch2/catch.hpp>
#include <thread>

#include "daemon/cli/commands/commands.h"
#include "daemon/config/local_socket.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

TEST_CASE("a daemon that ends before it answers has finished") {
  const test::TempDir temp;
  const Paths paths{temp / "run", temp / "config.toml", temp / "cache", temp / "state", {}};
  REQUIRE(ensure_private_directory(paths.runtime_dir));
  auto listening = listen_at(paths.socket());
  REQUIRE(listening);
  std::thread daemon([&] {
    const UniqueFd client(::accept(listening->get(), nullptr, nullptr));
    char byte = 0;
    (void)::recv(client.get(), &byte, 1, 0);  // it has been asked
  });
  const auto stopped = stop_daemon(paths);
  daemon.join();
  REQUIRE(stopped);
  CHECK(*stopped == Stopped::kFinished);
}
