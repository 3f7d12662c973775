// Peers that say nothing, or not all of it, do not lock an editor out.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/server/daemon_fixture.h"

using namespace efimd;
using namespace std::chrono_literals;
using test::RunningDaemon;
using test::SocketEditor;

TEST_CASE("the oldest silent connection gives way to a newer one") {
  RunningDaemon daemon([](auto& settings) { settings.sessions_max = 4; });
  SocketEditor served(daemon.socket());
  served.initialize();
  std::vector<std::unique_ptr<SocketEditor>> silent;
  for (int i = 0; i < 3; ++i) silent.push_back(std::make_unique<SocketEditor>(daemon.socket()));
  SocketEditor editor(daemon.socket());
  editor.initialize();
  silent.front()->wait_for_end();
  served.request(2, "efim/version");
  CHECK(served.answer(2).contains("result"));
}

TEST_CASE("a connection that says nothing in time is closed") {
  RunningDaemon daemon([](auto& settings) { settings.silence_max = 1ms; });
  SocketEditor silent(daemon.socket());
  silent.wait_for_end();
  daemon.log.wait_for("the peer says nothing");
}

TEST_CASE("a message that is not finished in time ends its connection") {
  RunningDaemon daemon([](auto& settings) { settings.frame_max = 1ms; });
  SocketEditor editor(daemon.socket());
  editor.initialize();
  editor.send_bytes("Content-Length: 100\r\n\r\n{");
  editor.wait_for_end();
  daemon.log.wait_for("does not finish its message");
}

TEST_CASE("large messages that are not finished are bounded in the sum") {
  RunningDaemon daemon;
  const std::string half(std::size_t{100} << 20, ' ');
  std::vector<std::unique_ptr<SocketEditor>> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(std::make_unique<SocketEditor>(daemon.socket()));
    peers.back()->initialize();
    peers.back()->send_bytes("Content-Length: 120000000\r\n\r\n");
    peers.back()->send_bytes(half);
  }
  peers.back()->wait_for_end();
  daemon.log.wait_for("too much of unfinished messages");
  SocketEditor editor(daemon.socket());
  editor.initialize();
}
