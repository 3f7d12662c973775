#include "daemon/server/daemon.h"

#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "daemon/config/build.h"
#include "tests/server/daemon_fixture.h"

using namespace efimd;
using namespace std::chrono_literals;
using test::Json;
using test::RunningDaemon;
using test::SocketEditor;

namespace {

constexpr char kUri[] = "file:///src/a.cpp";

/// A daemon whose model is ready and suggests `text` whatever it is shown.
struct ReadyDaemon : RunningDaemon {
  explicit ReadyDaemon(const std::string& text, const Change& change = {})
      : RunningDaemon(change, Model::kHeld) {
    script->continuation = [text](const test::ScriptedPrompt&) { return text; };
    loading.open();
    log.wait_for("the model is ready");
  }
};

/// An initialized editor with one open document.
struct Editor : SocketEditor {
  Editor(const RunningDaemon& daemon, const std::string& text) : SocketEditor(daemon.socket()) {
    initialize();
    open(kUri, text);
  }
};

}  // namespace

TEST_CASE("a suggestion and its receipt come through the whole daemon") {
  ReadyDaemon daemon("42;");
  Editor editor(daemon, "int a = \n");
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1) == "42;");
  const Json receipt = editor.next("efim/receipt");
  CHECK(receipt.at("request") == 1);
  CHECK(receipt.at("source") == "engine");
  CHECK(receipt.at("evaluatedTokens").get<int>() + receipt.at("reusedTokens").get<int>() ==
        receipt.at("promptTokens").get<int>());
  CHECK_FALSE(receipt.contains("reason"));
}

TEST_CASE("initialize is answered while the model loads, requests are empty with the reason") {
  RunningDaemon daemon({}, RunningDaemon::Model::kHeld);
  daemon.script->continuation = [](const test::ScriptedPrompt&) { return "42;"; };
  SocketEditor editor(daemon.socket());
  editor.initialize({{"window", {{"workDoneProgress", true}}}});
  editor.open(kUri, "int a = \n");
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1).empty());
  CHECK(editor.next("efim/receipt").at("reason").get<std::string>().find("loading") !=
        std::string::npos);
  editor.request(2, "efim/status");
  CHECK(editor.answer(2).at("result").at("state").at("name") == "loading");

  editor.next("window/workDoneProgress/create");
  editor.send({{"jsonrpc", "2.0"}, {"id", "efimd/model-progress"}, {"result", nullptr}});
  CHECK(editor.next("$/progress").at("value").at("kind") == "begin");
  daemon.loading.open();
  while (editor.next("$/progress").at("value").at("kind") != "end") {
  }
  editor.complete(3, kUri, 0, 8);
  CHECK(editor.suggestion(3) == "42;");
}

TEST_CASE("a model that cannot be loaded is shown, in the status too, and the daemon lives") {
  RunningDaemon daemon([](service::Daemon::Settings& settings) {
    settings.engine = [](auto&, std::stop_token) -> Result<std::unique_ptr<engine::Engine>> {
      return fail(Fault::kBadInput, "x.gguf: not a GGUF file", "download it again");
    };
  });
  daemon.log.wait_for("x.gguf: not a GGUF file");
  Editor editor(daemon, "int a = \n");
  const std::string shown = editor.next("window/showMessage").at("message");
  CHECK(shown.find("x.gguf: not a GGUF file; download it again") != std::string::npos);
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1).empty());
  CHECK(editor.next("efim/receipt").contains("reason"));
  editor.request(2, "efim/status");
  CHECK(editor.answer(2).at("result").at("state").at("name") == "failed");
}

TEST_CASE("a superseded request is answered null while the engine is still at it") {
  ReadyDaemon daemon("42;");
  Editor editor(daemon, "int a = \n");
  daemon.script->hold_gate.close();
  editor.complete(1, kUri, 0, 8);
  daemon.script->hold_gate.wait_until_reached();
  editor.complete(2, kUri, 0, 7);
  CHECK(editor.answer(1).at("result").is_null());
  daemon.script->hold_gate.open();
  CHECK(editor.suggestion(2) == "42;");
}

TEST_CASE("an editor that leaves during its request disturbs no other") {
  ReadyDaemon daemon("42;");
  {
    Editor leaving(daemon, "int a = \n");
    daemon.script->hold_gate.close();
    leaving.complete(1, kUri, 0, 8);
    daemon.script->hold_gate.wait_until_reached();
  }
  daemon.log.wait_for("the peer left");
  daemon.script->hold_gate.open();
  Editor staying(daemon, "int b = \n");
  staying.complete(1, kUri, 0, 8);
  CHECK(staying.suggestion(1) == "42;");
}

TEST_CASE("two sessions may hold different texts under one URI") {
  ReadyDaemon daemon("");
  daemon.script->continuation = [](const test::ScriptedPrompt& prompt) {
    return prompt.before.find("first") != std::string::npos ? "1;" : "2;";
  };
  Editor first(daemon, "// first\nint a = \n"), second(daemon, "// other\nint a = \n");
  first.complete(1, kUri, 1, 8);
  second.complete(1, kUri, 1, 8);
  CHECK(first.suggestion(1) == "1;");
  CHECK(second.suggestion(1) == "2;");
}

TEST_CASE("frames may be split anywhere") {
  ReadyDaemon daemon("42;");
  const std::string bytes = test::whole_conversation(kUri, "int \u20ac = ");
  SocketEditor bytewise(daemon.socket());
  for (const char byte : bytes) bytewise.send_bytes({&byte, 1});
  CHECK(bytewise.suggestion(1) == "42;");
  for (const std::size_t piece : {7U, 64U, 4096U}) {
    SocketEditor editor(daemon.socket());
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      editor.send_bytes(std::string_view(bytes).substr(at, piece));
    CHECK(editor.suggestion(1) == "42;");
  }
}

TEST_CASE("wrong lengths close that connection with a line in the log, never the daemon") {
  ReadyDaemon daemon("42;");
  for (const char* bytes : {"Content-Length: 99999999999\r\n\r\n{}", "Content-Length: -1\r\n\r\n{}",
                            "Content-Length: x\r\n\r\n{}", "\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"}) {
    INFO(bytes);
    SocketEditor editor(daemon.socket());
    editor.send_bytes(bytes);
    editor.wait_for_end();
  }
  daemon.log.wait_for("session 5: closed");
  // Too short a length: the rest of the body is no header.
  SocketEditor cut(daemon.socket());
  cut.send_bytes("Content-Length: 2\r\n\r\n{\"jsonrpc\":\"2.0\"}\r\n\r\n");
  cut.wait_for_end();
  Editor editor(daemon, "int a = \n");
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1) == "42;");
}

TEST_CASE("a peer that leaves inside a message is noted") {
  ReadyDaemon daemon("");
  SocketEditor editor(daemon.socket());
  editor.send_bytes("Content-Length: 50\r\n\r\n{\"json");
  editor.hang_up();
  daemon.log.wait_for("the peer left inside a message");
}

TEST_CASE("a peer that does not read its answers is disconnected at the bound") {
  ReadyDaemon daemon("42;", [](auto& settings) { settings.output_bytes_max = 4096; });
  SocketEditor deaf(daemon.socket());
  // Far more than the kernel buffers between two Unix sockets.
  for (int i = 0; i < 20000 && !daemon.log.holds("does not read"); ++i)
    deaf.request(i, "efim/status");
  daemon.log.wait_for("does not read");
  Editor editor(daemon, "int a = \n");
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1) == "42;");
}

TEST_CASE("more sessions than allowed are closed, and a place that frees up is given away") {
  ReadyDaemon daemon("", [](auto& settings) { settings.sessions_max = 1; });
  auto first = std::make_unique<Editor>(daemon, "");
  SocketEditor(daemon.socket()).wait_for_end();
  first.reset();
  daemon.log.wait_for("session 1: closed");
  SocketEditor second(daemon.socket());
  second.initialize();
}

TEST_CASE("a second daemon is refused, with the pid of the first") {
  ReadyDaemon daemon("");
  service::Daemon::Settings settings;
  settings.socket = daemon.socket();
  settings.lock = daemon.lock();
  const auto second = service::Daemon::open(std::move(settings));
  REQUIRE_FALSE(second);
  CHECK(second.error().what ==
        "a daemon is running already (pid " + std::to_string(::getpid()) + ")");
}

TEST_CASE("a lock whose holder does not listen is given up after the wait") {
  const test::TempDir folder;
  const auto holder = service::LockFile::try_lock(folder / "l");
  REQUIRE(holder);
  service::Daemon::Settings settings;
  settings.socket = folder / "s";
  settings.lock = folder / "l";
  settings.lock_wait = 0ms;
  const auto daemon = service::Daemon::open(std::move(settings));
  REQUIRE_FALSE(daemon);
  CHECK(daemon.error().message().find("does not listen") != std::string::npos);
}

TEST_CASE("efim/stop is answered, then the daemon ends and its name is free") {
  ReadyDaemon daemon("");
  SocketEditor editor(daemon.socket());
  editor.initialize();
  editor.request(1, "efim/stop");
  CHECK(editor.answer(1).at("result").is_null());
  CHECK(editor.next("efim/leaving").empty());
  editor.wait_for_end();
  daemon.join();
  CHECK_FALSE(std::filesystem::exists(daemon.socket()));
  const auto lock = service::LockFile::try_lock(daemon.lock());
  REQUIRE(lock);
  CHECK(lock->has_value());
}

TEST_CASE("D-4: stopping ends a request that the engine is at") {
  ReadyDaemon daemon("42;");
  Editor editor(daemon, std::string(2000, 'x') + "\n");
  daemon.script->hold_gate.close();
  editor.complete(1, kUri, 0, 2000);
  daemon.script->hold_gate.wait_until_reached();
  daemon.stop();
  editor.wait_for_end();
  const int steps = daemon.script->steps;
  daemon.script->hold_gate.open();
  daemon.join();
  CHECK(daemon.script->steps <= steps + 1);
}

TEST_CASE("D-6: a daemon that nobody waits for retires at once, and its answer still goes out") {
  ReadyDaemon daemon("", [](auto& settings) { settings.retire_quiet = 0ms; });
  SocketEditor later(daemon.socket());
  later.request(1, "efim/retire");
  CHECK(later.answer(1).at("result").is_null());
  later.wait_for_end();
  daemon.join();
  CHECK_FALSE(std::filesystem::exists(daemon.socket()));
}

TEST_CASE("D-6: a daemon that is asked to retire answers first what waits") {
  ReadyDaemon daemon("42;", [](auto& settings) { settings.retire_quiet = 0ms; });
  Editor editor(daemon, "int a = \n");
  daemon.script->hold_gate.close();
  editor.complete(1, kUri, 0, 8);
  daemon.script->hold_gate.wait_until_reached();
  SocketEditor later(daemon.socket());
  later.request(1, "efim/retire");
  later.answer(1);
  later.request(2, "efim/version");  // it still serves
  CHECK(later.answer(2).at("result").contains("build"));
  daemon.script->hold_gate.open();
  CHECK(editor.suggestion(1) == "42;");
  CHECK(editor.next("efim/leaving") == Json{{"anotherComes", true}});
  editor.wait_for_end();
  daemon.join();
}

TEST_CASE(
    "D-7: a daemon leaves once another configuration is there and is no longer being written") {
  std::atomic<int> looks = 0;
  RunningDaemon daemon([&](auto& settings) {
    settings.retire_quiet = 0ms;
    settings.look_pause = 0ms;
    settings.look_at_config = [&] {
      return service::ConfigLook{++looks < 4 ? service::ConfigLook::Found::kBeingWritten
                                             : service::ConfigLook::Found::kOther};
    };
  });
  SocketEditor editor(daemon.socket());
  editor.wait_for_end();
  daemon.join();
  CHECK(looks == 4);
}

TEST_CASE("D-7: a malformed configuration is told once to the user, and in the status") {
  std::atomic<int> looks = 0;
  ReadyDaemon daemon("42;", [&](auto& settings) {
    settings.retire_quiet = 0ms;
    settings.look_pause = 0ms;
    settings.look_at_config = [&] {
      ++looks;
      return service::ConfigLook{service::ConfigLook::Found::kMalformed,
                                 service::ConfigWarning{7, "not valid TOML"}};
    };
  });
  Editor editor(daemon, "int a = \n");
  CHECK(editor.next("window/showMessage")
            .at("message")
            .get<std::string>()
            .find(":7: not valid TOML") != std::string::npos);
  editor.complete(1, kUri, 0, 8);
  CHECK(editor.suggestion(1) == "42;");
  editor.request(2, "efim/status");
  CHECK(editor.answer(2).at("result").at("config").at("warnings").at(0).at("line") == 7);
  for (int id = 3; looks < 3; ++id) {
    editor.complete(id, kUri, 0, 8);
    editor.suggestion(id);
  }
  CHECK(daemon.log.count("not valid TOML") == 1);
}

TEST_CASE("D-2: an idle daemon takes its socket away and ends") {
  RunningDaemon daemon([](auto& settings) { settings.idle_exit = 1ms; });
  daemon.join();
  CHECK(daemon.log.holds("leaving"));
  CHECK_FALSE(std::filesystem::exists(daemon.socket()));
}

TEST_CASE(
    "D-2: an editor that connects while the daemon is leaving is served, and others find it") {
  std::promise<service::UniqueFd> connecting;
  std::atomic<int> leavings = 0;
  RunningDaemon daemon([&](service::Daemon::Settings& settings) {
    settings.idle_exit = 1ms;
    settings.before_leaving = [&, socket = settings.socket] {
      if (++leavings == 1) connecting.set_value(std::move(service::connect_to(socket).value()));
    };
  });
  SocketEditor late(connecting.get_future().get());
  late.initialize();
  SocketEditor next(daemon.socket());
  next.initialize();
  CHECK(leavings == 1);
  late.hang_up();
  next.hang_up();
  daemon.join();
  CHECK(leavings >= 2);
}

TEST_CASE("a daemon that leaves does not take another's socket away") {
  RunningDaemon daemon;
  // As if a cleaner of old files had removed ours and another daemon listened there since.
  std::filesystem::remove(daemon.socket());
  std::ofstream(daemon.socket()) << "another's";
  daemon.stop();
  daemon.join();
  CHECK(std::filesystem::exists(daemon.socket()));
}

TEST_CASE("D-5: a hundred idle exits behind a service manager's socket lose no request") {
  constexpr int kStartsMin = 100;
  test::TempDir folder;
  const auto path = folder / "s";
  const service::UniqueFd held = std::move(service::listen_at(path).value());  // the manager's
  std::atomic<int> starts = 0;
  std::atomic<bool> done = false;
  std::thread manager([&] {
    while (!done) {
      pollfd waiting{held.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 10) <= 0) continue;
      RunningDaemon daemon([&](service::Daemon::Settings& settings) {
        settings.socket = path;
        settings.passed = service::UniqueFd(::dup(held.get()));
        settings.idle_exit = 1ms;
      });
      ++starts;
      daemon.join();
    }
  });
  int answered = 0;
  for (; starts < kStartsMin; ++answered) {
    SocketEditor editor(path);
    editor.request(1, "efim/version");
    if (editor.answer(1).at("result").at("version") != service::this_build().version) break;
    editor.hang_up();
    // At about the moment of leaving, before it and after it.
    std::this_thread::sleep_for(std::chrono::microseconds(400 * (answered % 6)));
  }
  done = true;
  manager.join();
  CHECK(starts >= kStartsMin);
  CHECK(answered >= kStartsMin);
  CHECK(std::filesystem::exists(path));
}
