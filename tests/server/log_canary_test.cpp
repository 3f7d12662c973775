// The log never holds text, whatever a client sends.
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "daemon/server/connection.h"
#include "tests/server/fake_editor.h"
#include "tests/support/canary.h"
#include "tests/support/count.h"

using namespace efimd;
using test::CanaryMessages;
using test::FakeEditor;
using test::FakeHost;

namespace {

/// One client's bytes through a connection, until both have closed.
void converse(FakeHost& host, const std::string& bytes) {
  boost::asio::io_context io;
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  service::Connection::Socket socket(io, boost::asio::local::stream_protocol(), ends[0]);
  bool ended = false;
  const auto connection = std::make_shared<service::Connection>(
      std::move(socket), host,
      service::Connection::Settings{1, 1U << 20, [&](std::uint64_t) { ended = true; }});
  connection->start();
  REQUIRE(::send(ends[1], bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  ::shutdown(ends[1], SHUT_WR);
  io.run();
  ::close(ends[1]);
  CHECK(ended);
}

}  // namespace

TEST_CASE("broken messages through a session leave no text in its log") {
  const int count = test::times("EFIMD_CANARY_MESSAGES", 10000);
  CanaryMessages messages(1);
  FakeEditor editor;
  editor.host.logger->set_level(spdlog::level::debug);
  editor.send(CanaryMessages::initialize());
  for (int i = 0; i < count; ++i) {
    editor.send(messages.body());
    editor.messages.clear();
    editor.host.submitted.clear();
    editor.host.opened.clear();
  }
  const std::string log = editor.host.logged.str();
  CHECK(log.size() > 10000);  // the messages were refused, and that was logged
  const std::size_t at = std::min(log.find("QZQZ"), log.find("7777"));
  INFO(log.substr(at == std::string::npos ? 0 : at < 100 ? 0 : at - 100, 200));
  CHECK_FALSE(CanaryMessages::sings(log));
}

TEST_CASE("broken frames through a connection leave no text in the log") {
  CanaryMessages messages(2);
  FakeHost host;
  host.logger->set_level(spdlog::level::debug);
  const int count = test::times("EFIMD_CANARY_MESSAGES", 10000) / 5;
  for (int i = 0; i < count; ++i) {
    std::string bytes = lsp::framed(CanaryMessages::initialize());
    for (int frame = 0; frame < 3; ++frame) bytes += messages.frame();
    converse(host, bytes);
  }
  const std::string log = host.logged.str();
  CHECK(log.find("closed: message header") != std::string::npos);
  CHECK_FALSE(CanaryMessages::sings(log));
}

TEST_CASE("the log says where a message is broken, and the answer may quote it") {
  FakeEditor editor;
  editor.initialize();
  editor.notify("textDocument/didChange",
                {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 2}}},
                 {"contentChanges", {"hunter2"}}});
  const std::string log = editor.host.logged.str();
  CHECK(log.find("params.contentChanges[0] must be an object") != std::string::npos);
  CHECK(log.find("hunter2") == std::string::npos);
  editor.send(std::string("{\"jsonrpc\" hunter2"));
  CHECK(editor.host.logged.str().find("not JSON at byte 11") != std::string::npos);
  CHECK(editor.host.logged.str().find("hunter2") == std::string::npos);
  CHECK(editor.messages.back().at("error").at("message").get<std::string>().find("hunter2") !=
        std::string::npos);
}
