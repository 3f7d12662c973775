// A file system that stalls costs the document that lies there, and nobody else.
#include <catch2/catch.hpp>
#include <future>
#include <memory>

#include "tests/server/daemon_fixture.h"

using namespace efimd;
using namespace std::chrono_literals;
using test::Json;
using test::RunningDaemon;
using test::SocketEditor;

namespace {

constexpr char kStalled[] = "file:///stalled/a.cpp";
constexpr char kElsewhere[] = "file:///src/a.cpp";

/// Judging a file below /stalled does not end before the gate opens. Its threads may outlive the
/// daemon, so they share it.
struct StalledFiles {
  std::shared_ptr<std::promise<void>> open = std::make_shared<std::promise<void>>();
  std::shared_future<void> gate = open->get_future().share();
  ~StalledFiles() { open->set_value(); }
  RunningDaemon::Change change() {
    return [gate = gate](service::Daemon::Settings& settings) {
      settings.facts = [gate](const std::string& uri) {
        if (uri.find("/stalled/") != std::string::npos) gate.wait();
        return service::FileFacts{};
      };
    };
  }
};

void make_ready(RunningDaemon& daemon) {
  daemon.script->continuation = [](const test::ScriptedPrompt&) { return "42;"; };
  daemon.loading.open();
  daemon.log.wait_for("the model is ready");
}

}  // namespace

TEST_CASE("other editors are served while a file system stalls") {
  StalledFiles files;
  RunningDaemon daemon(files.change(), RunningDaemon::Model::kHeld);
  make_ready(daemon);
  SocketEditor stalled(daemon.socket());
  stalled.initialize();
  for (int i = 0; i < 50; ++i) stalled.open(kStalled + std::to_string(i), "int a = \n");
  SocketEditor other(daemon.socket());
  other.initialize();
  other.open(kElsewhere, "int a = \n");
  other.complete(1, kElsewhere, 0, 8);
  CHECK(other.suggestion(1) == "42;");
  CHECK_FALSE(other.next("efim/receipt").contains("notStored"));
}

TEST_CASE("a document on a file system that stalls is completed and not stored") {
  StalledFiles files;
  RunningDaemon daemon(files.change(), RunningDaemon::Model::kHeld);
  make_ready(daemon);
  SocketEditor editor(daemon.socket());
  editor.initialize();
  editor.open(kStalled, "int a = \n");
  editor.complete(1, kStalled, 0, 8);
  CHECK(editor.suggestion(1) == "42;");
  CHECK(editor.next("efim/receipt").at("notStored").get<std::string>().find("does not answer") !=
        std::string::npos);
}

TEST_CASE("a daemon ends while a file system stalls") {
  StalledFiles files;
  RunningDaemon daemon(files.change(), RunningDaemon::Model::kHeld);
  make_ready(daemon);
  SocketEditor editor(daemon.socket());
  editor.initialize();
  editor.open(kStalled, "int a = \n");
  editor.request(1, "efim/version");
  editor.answer(1);
  daemon.stop();
  daemon.join();
}
