#include "daemon/client/client.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <future>
#include <iterator>
#include <thread>

#include "daemon/client/spawn.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using efimd::test::TempDir;
using lsp::Json;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// A user's folders, and a fake daemon that behaves as `mode` says (fake_daemon.cpp).
struct User {
  TempDir temp;
  Paths paths{temp / "run", temp / "config.toml", temp / "cache", temp / "state", {}};

  SpawnPlan plan(const char* mode) const {
    return {{EFIMD_FAKE_DAEMON, mode},
            {"EFIMD_RUNTIME_DIR=" + paths.runtime_dir.string()},
            paths.log_file()};
  }
  std::size_t starts() const {
    std::ifstream file(paths.runtime_dir / "starts");
    return static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(file), {}));
  }
};

/// Both ends of a connection.
struct Pair {
  UniqueFd ours, theirs;
  Pair() {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  void say(const std::string& body) const {
    const std::string frame = lsp::framed(body);
    REQUIRE(::write(theirs.get(), frame.data(), frame.size()) ==
            static_cast<ssize_t>(frame.size()));
  }
};

}  // namespace

TEST_CASE("a daemon is started where none runs, and answers") {
  const User user;
  auto socket = connect_or_spawn(user.paths, user.plan("listen"), in(seconds(120)));
  REQUIRE(socket);
  RpcClient client(std::move(*socket));
  const auto answer = client.request("efim/status", nullptr, in(seconds(120)));
  REQUIRE(answer);
  CHECK((*answer)["pid"].get<int>() != ::getpid());
  CHECK(LockFile::last_holder(user.paths.daemon_lock()) == (*answer)["pid"].get<int>());
}

TEST_CASE("thirty racing starters make one daemon") {
  const User user;
  std::vector<std::future<Result<UniqueFd>>> racing;
  for (int i = 0; i < 30; ++i)
    racing.push_back(std::async(std::launch::async, [&] {
      return connect_or_spawn(user.paths, user.plan("listen"), in(seconds(120)));
    }));
  std::vector<UniqueFd> connected;
  for (auto& one : racing) {
    auto socket = one.get();
    REQUIRE(socket);
    connected.push_back(std::move(*socket));
  }
  CHECK(user.starts() == 1);
}

TEST_CASE("a daemon that runs is joined, none is started") {
  const User user;
  const auto first = connect_or_spawn(user.paths, user.plan("listen"), in(seconds(120)));
  const auto second = connect_or_spawn(user.paths, user.plan("die"), in(seconds(120)));
  REQUIRE(first);
  CHECK(second);
}

TEST_CASE("a daemon that cannot start is quoted") {
  const User user;
  const auto socket = connect_or_spawn(user.paths, user.plan("complain"), in(seconds(120)));
  REQUIRE_FALSE(socket);
  CHECK(socket.error().message().find("the disk is full; make room") != std::string::npos);
}

TEST_CASE("a daemon that dies at its start is an error that names the log") {
  const User user;
  const auto socket = connect_or_spawn(user.paths, user.plan("die"), in(seconds(120)));
  REQUIRE_FALSE(socket);
  CHECK(socket.error().message().find(user.paths.log_file().string()) != std::string::npos);
}

TEST_CASE("a program that is not there is an error, not a wait") {
  const User user;
  SpawnPlan plan = user.plan("listen");
  plan.command = {(user.temp / "no-such-program").string()};
  CHECK_FALSE(connect_or_spawn(user.paths, plan, in(seconds(120))));
}

TEST_CASE("a daemon that says nothing is given up at the deadline") {
  const User user;
  const auto socket = connect_or_spawn(user.paths, user.plan("silent"), in(milliseconds(50)));
  REQUIRE_FALSE(socket);
  CHECK(socket.error().fault == Fault::kNotReady);
}

TEST_CASE("nothing is started in a folder that is open to others") {
  const User user;
  std::filesystem::create_directory(user.paths.runtime_dir);
  ::chmod(user.paths.runtime_dir.c_str(), 0755);
  const auto socket = connect_or_spawn(user.paths, user.plan("listen"), in(seconds(120)));
  REQUIRE_FALSE(socket);
  CHECK(socket.error().message().find("chmod 700") != std::string::npos);
  CHECK(user.starts() == 0);
}

TEST_CASE("whoever a lock names in a folder that is open to others is not asked to finish") {
  const User user;
  std::filesystem::create_directory(user.paths.runtime_dir);
  ::chmod(user.paths.runtime_dir.c_str(), 0755);
  const auto lock = LockFile::try_lock(user.paths.daemon_lock());  // names this process
  REQUIRE((lock && *lock));
  const auto ended = end_holder(user.paths.daemon_lock(), "the daemon");
  REQUIRE_FALSE(ended);
  CHECK(ended.error().fault == Fault::kBadInput);
}

TEST_CASE("a request takes its own answer and hands notifications on") {
  Pair pair;
  RpcClient client(std::move(pair.ours));
  std::vector<std::string> heard;
  client.on_notification = [&](const std::string& method, const Json&) { heard.push_back(method); };
  pair.say(lsp::notification_body("efim/receipt", Json::object()));
  pair.say(
      lsp::request_body(std::string("theirs"), "window/workDoneProgress/create", Json::object()));
  pair.say(lsp::response_body(std::int64_t{99}, 1));
  pair.say(lsp::response_body(std::int64_t{1}, 42));
  const auto answer = client.request("x", nullptr, in(seconds(120)));
  REQUIRE(answer);
  CHECK(*answer == 42);
  CHECK(heard == std::vector<std::string>{"efim/receipt"});
}

TEST_CASE("the daemon's errors, its end and its silence are told apart") {
  Pair pair;
  RpcClient client(std::move(pair.ours));
  pair.say(lsp::error_body(std::int64_t{1}, lsp::ErrorCode::kMethodNotFound, "no such method"));
  CHECK(client.request("x", nullptr, in(seconds(120))).error().fault == Fault::kUnsupported);
  pair.say(lsp::error_body(std::int64_t{2}, lsp::ErrorCode::kInvalidParams, "bad"));
  const auto refused = client.request("x", nullptr, in(seconds(120)));
  CHECK(refused.error().fault == Fault::kBadInput);
  CHECK(refused.error().message() == "bad");  // a user does not know the method's name
  CHECK(client.request("x", nullptr, in(milliseconds(5))).error().fault == Fault::kNotReady);
  pair.theirs.reset();
  CHECK(client.request("x", nullptr, in(seconds(120))).error().fault == Fault::kIo);
}
