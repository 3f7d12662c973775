#include "daemon/client/bridge.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include "lsp/json_rpc.h"
#include "tests/support/json_of.h"

using namespace efimd;
using namespace efimd::service;
using lsp::Json;

namespace {

/// As main() does, for all tests of this program: an end that has gone is an error of the write to it.
[[maybe_unused]] const auto kIgnoresBrokenPipes = std::signal(SIGPIPE, SIG_IGN);

constexpr int kPatienceMs = 180000;  // what a busy machine may take

/// One end of a conversation, as a test speaks it.
struct Peer {
  UniqueFd socket;
  lsp::FrameReader frames;

  void say(const std::string& body) const { say_bytes(lsp::framed(body)); }
  void say_bytes(std::string_view bytes) const {
    REQUIRE(::write(socket.get(), bytes.data(), bytes.size()) ==
            static_cast<ssize_t>(bytes.size()));
  }
  /// The next message; null when the other end has gone.
  Json hear() {
    for (;;) {
      auto body = frames.next();
      REQUIRE(body);
      if (*body) return test::json_of(**body);
      pollfd waiting{socket.get(), POLLIN, 0};
      REQUIRE(::poll(&waiting, 1, kPatienceMs) == 1);
      std::array<char, 65536> bytes;
      const ssize_t size = ::read(socket.get(), bytes.data(), bytes.size());
      if (size <= 0) return nullptr;
      frames.feed({bytes.data(), static_cast<std::size_t>(size)});
    }
  }
  void answer(const Json& request, Json result) const {
    say(Json{{"jsonrpc", "2.0"}, {"id", request["id"]}, {"result", std::move(result)}}.dump());
  }
};

/// Throws instead of REQUIRE, which belongs to the test's own thread.
std::pair<UniqueFd, UniqueFd> connected_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A bridge in a thread of its own, between an editor and daemons that the test plays.
class Stage {
 public:
  explicit Stage(int daemons_that_fail = 0,
                 std::chrono::milliseconds dying_max = BridgeEnds().dying_max,
                 std::chrono::milliseconds greeting_max = std::chrono::hours(1),
                 std::chrono::milliseconds silence_max = std::chrono::hours(1))
      : failing_(daemons_that_fail) {
    auto [ours, theirs] = connected_pair();
    editor.socket = std::move(ours);
    inside_ = std::move(theirs);
    auto [hand, take] = connected_pair();
    handed_ = std::move(hand);
    taken_ = std::move(take);
    thread_ = std::thread([this, dying_max, greeting_max, silence_max] {
      code_ = Bridge({.editor_in = inside_.get(),
                      .editor_out = inside_.get(),
                      .connect = [this](Deadline) { return connect(); },
                      .log = [this](const std::string& line) { log_ += line + "\n"; },
                      .dying_max = dying_max,
                      .greeting_max = greeting_max,
                      .silence_max = silence_max})
                  .run();
      inside_.reset();
    });
  }
  ~Stage() {
    editor.socket.reset();
    if (thread_.joinable()) thread_.join();
  }

  /// The daemon that the bridge has connected to, in the order of connecting.
  Peer next_daemon() {
    int fd = -1;
    pollfd waiting{taken_.get(), POLLIN, 0};
    REQUIRE(::poll(&waiting, 1, kPatienceMs) == 1);
    REQUIRE(::read(taken_.get(), &fd, sizeof fd) == sizeof fd);
    return Peer{UniqueFd(fd), {}};
  }
  /// A daemon that has answered initialize.
  Peer greeted_daemon() {
    Peer daemon = next_daemon();
    const Json greeting = daemon.hear();
    REQUIRE(greeting["method"] == "initialize");
    daemon.answer(greeting, {{"capabilities", Json::object()}});
    return daemon;
  }
  Peer start() {
    editor.say(lsp::request_body(std::int64_t{1}, "initialize", Json::object()));
    Peer daemon = greeted_daemon();
    REQUIRE(editor.hear()["id"] == 1);
    return daemon;
  }
  int join() {
    thread_.join();
    return code_;
  }
  const std::string& log() const { return log_; }

  Peer editor;

 private:
  Result<UniqueFd> connect() {
    if (failing_ > 0) {
      --failing_;
      return fail(Fault::kIo, "no daemon today");
    }
    auto [ours, theirs] = connected_pair();
    const int fd = theirs.release();
    (void)!::write(handed_.get(), &fd, sizeof fd);
    return std::move(ours);
  }

  int failing_;
  UniqueFd inside_, handed_, taken_;
  std::thread thread_;
  int code_ = -1;
  std::string log_;
};

std::string inline_request(int id) {
  return lsp::request_body(std::int64_t{id}, "textDocument/inlineCompletion",
                           {{"textDocument", {{"uri", "file:///a"}}}});
}

}  // namespace

TEST_CASE("messages pass through the bridge both ways") {
  Stage stage;
  Peer daemon = stage.start();
  stage.editor.say(inline_request(2));
  const Json asked = daemon.hear();
  CHECK(asked["id"] == 2);
  daemon.answer(asked, {{"items", Json::array()}});
  CHECK(stage.editor.hear()["id"] == 2);
}

TEST_CASE("frames cut anywhere pass through the bridge") {
  Stage stage;
  Peer daemon = stage.start();
  for (const char byte : lsp::framed(inline_request(2))) stage.editor.say_bytes({&byte, 1});
  const Json asked = daemon.hear();
  for (const char byte : lsp::framed(lsp::response_body(std::int64_t{2}, nullptr)))
    daemon.say_bytes({&byte, 1});
  CHECK(stage.editor.hear()["id"] == 2);
}

TEST_CASE("a request that its daemon did not live to answer is answered by the next") {
  Stage stage;
  {
    Peer daemon = stage.start();
    stage.editor.say(inline_request(2));
    REQUIRE(daemon.hear()["id"] == 2);
    daemon.say_bytes("Content-Length: 500\r\n\r\n{\"half");
  }
  Peer second = stage.greeted_daemon();
  const Json asked = second.hear();
  CHECK(asked["id"] == 2);
  second.answer(asked, 7);
  const Json answer = stage.editor.hear();
  CHECK(answer["id"] == 2);
  CHECK(answer["result"] == 7);
}

TEST_CASE("a daemon that leaves before its initialize answer is replaced unnoticed") {
  Stage stage;
  stage.editor.say(lsp::request_body(std::int64_t{1}, "initialize", Json::object()));
  { Peer leaving = stage.next_daemon(); }
  stage.greeted_daemon();
  CHECK(stage.editor.hear()["id"] == 1);
}

TEST_CASE("when daemons keep dying the request is answered with nothing, with one warning") {
  Stage stage;
  {
    Peer daemon = stage.start();
    stage.editor.say(inline_request(2));
    REQUIRE(daemon.hear()["id"] == 2);
  }
  for (int i = 1; i < Bridge::kAttemptsMax; ++i) stage.greeted_daemon();
  const Json answer = stage.editor.hear();
  CHECK(answer["id"] == 2);
  CHECK(answer["result"]["items"] == Json::array());
  CHECK(stage.editor.hear()["method"] == "window/showMessage");
  stage.editor.say(inline_request(3));
  CHECK(stage.editor.hear()["id"] == 3);
}

TEST_CASE("daemons that were asked to finish are no failures, however many they are") {
  Stage stage;
  Peer daemon = stage.start();
  for (int i = 0; i < 3 * Bridge::kAttemptsMax; ++i) {
    daemon.say(lsp::notification_body("efim/leaving", Json::object()));
    daemon.socket.reset();
    stage.editor.say(
        lsp::request_body(std::int64_t{10 + i}, "textDocument/inlineCompletion", Json::object()));
    daemon = stage.greeted_daemon();
    daemon.answer(daemon.hear(), i);
    const Json answer = stage.editor.hear();
    CHECK(answer["id"] == 10 + i);
    CHECK(answer["result"] == i);
  }
}

TEST_CASE("no daemon at all is an error to initialize that says why; the bridge lives on") {
  Stage stage(Bridge::kAttemptsMax);
  stage.editor.say(lsp::request_body(std::int64_t{1}, "initialize", Json::object()));
  const Json answer = stage.editor.hear();
  CHECK(answer["error"]["message"].get<std::string>().find("no daemon today") != std::string::npos);
  stage.editor.say(lsp::request_body(std::int64_t{2}, "shutdown", nullptr));
  CHECK(stage.editor.hear()["id"] == 2);
  stage.editor.say(lsp::notification_body("exit", nullptr));
  CHECK(stage.join() == 0);
}

TEST_CASE("a daemon that does not answer initialize is given up, and the editor is told why") {
  Stage stage(0, BridgeEnds().dying_max, std::chrono::milliseconds(1));
  stage.editor.say(lsp::request_body(std::int64_t{1}, "initialize", Json::object()));
  Peer hanging = stage.next_daemon();
  const Json answer = stage.editor.hear();
  CHECK(answer["id"] == 1);
  CHECK(answer["error"]["message"].get<std::string>().find("does not answer") != std::string::npos);
  CHECK(hanging.hear()["method"] == "initialize");
  CHECK(hanging.hear().is_null());
}

TEST_CASE("exit ends the bridge: 0 after shutdown, 1 without") {
  for (const bool polite : {true, false}) {
    Stage stage;
    Peer daemon = stage.start();
    if (polite) {
      stage.editor.say(lsp::request_body(std::int64_t{2}, "shutdown", nullptr));
      daemon.answer(daemon.hear(), nullptr);
      CHECK(stage.editor.hear()["id"] == 2);
    }
    stage.editor.say(lsp::notification_body("exit", nullptr));
    CHECK(stage.join() == (polite ? 0 : 1));
    CHECK(daemon.hear()["method"] == "exit");
    CHECK(daemon.hear().is_null());
  }
}

TEST_CASE("an editor that goes away ends the bridge with 0 and its daemon's session") {
  Stage stage;
  Peer daemon = stage.start();
  stage.editor.socket.reset();
  CHECK(stage.join() == 0);
  CHECK(daemon.hear().is_null());
}

TEST_CASE("an editor that sends what is no LSP ends the bridge with 1 and a reason") {
  for (const char* bytes : {"Content-Length: -5\r\n\r\n", "Content-Length: 99999999999999\r\n\r\n",
                            "hello\r\n\r\n", "\r\n\r\n"}) {
    CAPTURE(bytes);
    Stage stage;
    stage.editor.say_bytes(bytes);
    CHECK(stage.join() == 1);
    CHECK(stage.log().find("not LSP") != std::string::npos);
  }
}

TEST_CASE("a large document passes through a daemon that reads late") {
  Stage stage;
  Peer daemon = stage.start();
  const std::string text(4U << 20, 'x');  // more than a socket holds
  std::thread writer([&] {
    std::string_view rest;
    const std::string frame = lsp::framed(lsp::notification_body(
        "textDocument/didOpen",
        {{"textDocument",
          {{"uri", "file:///a"}, {"languageId", "c"}, {"version", 1}, {"text", text}}}}));
    for (rest = frame; !rest.empty();) {
      const ssize_t size = ::write(stage.editor.socket.get(), rest.data(), rest.size());
      if (size <= 0) return;
      rest.remove_prefix(static_cast<std::size_t>(size));
    }
  });
  const Json opened = daemon.hear();
  writer.join();
  CHECK(opened["params"]["textDocument"]["text"].get_ref<const std::string&>() == text);
}

TEST_CASE("a killed daemon whose socket takes connections a moment longer died once") {
  Stage stage(0, std::chrono::hours(1));  // a moment, whatever the machine is busy with
  {
    Peer daemon = stage.start();
    stage.editor.say(inline_request(2));
    REQUIRE(daemon.hear()["id"] == 2);
  }
  for (int i = 0; i < 3; ++i) stage.next_daemon().socket.reset();
  const Peer next = stage.greeted_daemon();
  stage.editor.socket.reset();
  stage.join();
  const std::string& log = stage.log();
  const auto first = log.find("the daemon ended");
  REQUIRE(first != std::string::npos);
  CHECK(log.find("the daemon ended", first + 1) == std::string::npos);
}

TEST_CASE("a daemon that gives no sign of life is given up, and the editor is told why") {
  Stage stage(0, BridgeEnds().dying_max, std::chrono::hours(1), std::chrono::milliseconds(1));
  Peer daemon = stage.start();
  stage.editor.say(inline_request(2));
  CHECK(daemon.hear()["id"] == 2);
  CHECK(daemon.hear()["method"] == "efim/version");
  CHECK(stage.editor.hear()["result"] == Json{{"items", Json::array()}});
  const Json told = stage.editor.hear();
  CHECK(told["method"] == "window/showMessage");
  CHECK(told["params"]["message"].get<std::string>().find("does not answer") != std::string::npos);
}
