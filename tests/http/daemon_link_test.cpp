#include "net/http/daemon_link.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/http/fake_daemon.h"

using namespace efimd;
using namespace efimd::http;

namespace {

/// A link to a daemon that hangs up at each request until it has had `bad` connections.
struct Linked {
  explicit Linked(int bad, std::chrono::milliseconds steady = DaemonLink::Ends{}.steady)
      : link(io,
             {[this](service::Deadline) { return daemon.connect(); },
              [this](const lsp::Message& message) { answered |= message.id == lsp::Id(1); },
              [this](const std::string& why) { lost = why; }, [](const std::string&) {}, steady}) {
    daemon.heard = [this, bad](const lsp::Message& message) {
      if (message.kind != lsp::Message::Kind::kRequest) return;
      if (daemon.connections <= bad) return daemon.hang_up();
      daemon.say(lsp::response_body(message.id, nullptr));
    };
  }

  boost::asio::io_context io;
  test::FakeDaemon daemon{io};
  bool answered = false;
  std::string lost;
  DaemonLink link;
};

}  // namespace

TEST_CASE("a request that makes the daemon hang up each time is given up") {
  Linked linked(100);
  linked.link.say(lsp::request_body(1, "efim/status", nullptr));
  while (linked.lost.empty() && linked.daemon.connections <= DaemonLink::kAttemptsMax)
    linked.io.run_one();
  CHECK(linked.lost == "the daemon ended");
  CHECK(linked.daemon.connections == DaemonLink::kAttemptsMax);
  CHECK(linked.link.is_resting());
}

TEST_CASE("failures with steady service between them are not in a row") {
  Linked linked(DaemonLink::kAttemptsMax + 1, std::chrono::milliseconds(0));
  linked.link.say(lsp::request_body(1, "efim/status", nullptr));
  while (!linked.answered && linked.lost.empty()) linked.io.run_one();
  CHECK(linked.lost.empty());
  CHECK(linked.answered);
}
