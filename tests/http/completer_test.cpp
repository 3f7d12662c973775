#include "net/http/completer.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/http/fake_daemon.h"

using namespace efimd;
using namespace efimd::http;

TEST_CASE("looks at a daemon that hangs are given up in time, each by its own (C-4)") {
  boost::asio::io_context io;
  test::FakeDaemon daemon(io);
  std::vector<lsp::Id> asked;
  int cancelled = 0;
  daemon.heard = [&](const lsp::Message& message) {
    if (message.method == "efim/status") asked.push_back(message.id);
    if (message.method == "$/cancelRequest") ++cancelled;
  };
  Completer completer(
      io, {[&](service::Deadline) { return daemon.connect(); }, {}, {}, [](const std::string&) {}},
      {});
  std::vector<int> first, second;  // statuses of /health
  const auto begin = Completer::Clock::now();
  completer.look([&](const ModelPages& pages) { first.push_back(pages.health().status); });
  while (asked.empty()) io.run_one();
  const auto between = Completer::Clock::now();
  completer.look([&](const ModelPages& pages) { second.push_back(pages.health().status); });

  completer.end_late(begin + Completer::kAnswerMax - std::chrono::nanoseconds(1));
  io.poll();
  CHECK(first.empty());
  completer.end_late(between + Completer::kAnswerMax - std::chrono::nanoseconds(1));
  io.poll();
  REQUIRE(first == std::vector{503});
  CHECK(second.empty());

  // The other one's answer does not hang on what the daemon owes the first.
  while (asked.size() < 2) io.run_one();
  CHECK(cancelled == 1);
  daemon.say(lsp::response_body(asked[1], lsp::Json::object()));
  while (second.empty()) io.run_one();
  CHECK(first.size() == 1);
}
