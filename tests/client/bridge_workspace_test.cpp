// BR-2: settings and workspace folders, which a new daemon learns as the one before had them.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "daemon/client/bridge_session.h"
#include "lsp/json_rpc.h"
#include "tests/support/json_of.h"

using namespace efimd;
using lsp::Json;

namespace {

Json folders(const std::vector<std::string>& uris) {
  Json list = Json::array();
  for (const std::string& uri : uris) list.push_back({{"uri", uri}, {"name", "name"}});
  return list;
}

/// An editor and its daemons, as this test plays them.
struct Workspace {
  service::BridgeSession session;

  explicit Workspace(Json initialize) {
    session.editor_says(lsp::request_body(std::int64_t{1}, "initialize", std::move(initialize)));
    greet();
    answer();
    session.editor_says(lsp::notification_body("initialized", Json::object()));
    session.take_for_daemon();
  }
  void greet() {
    session.connected();
    const auto bodies = session.take_for_daemon();
    REQUIRE(bodies.size() == 1);
    greeting = test::json_of(bodies[0]);
  }
  void answer() {
    session.daemon_says(Json{
        {"jsonrpc", "2.0"}, {"id", greeting["id"]}, {"result", {{"capabilities", Json::object()}}}}
                            .dump());
  }
  void configure(Json settings) {
    session.editor_says(lsp::notification_body("workspace/didChangeConfiguration",
                                               {{"settings", std::move(settings)}}));
  }
  void change(const std::vector<std::string>& added, const std::vector<std::string>& removed) {
    session.editor_says(lsp::notification_body(
        "workspace/didChangeWorkspaceFolders",
        {{"event", {{"added", folders(added)}, {"removed", folders(removed)}}}}));
  }
  /// The params of what a new daemon is told by `method`, in order.
  std::vector<Json> told(const std::string& method) {
    std::vector<Json> params;
    for (const std::string& body : session.take_for_daemon())
      if (const Json message = test::json_of(body); message["method"] == method)
        params.push_back(message["params"]);
    return params;
  }
  std::vector<Json> next_daemon_is_told(const std::string& method) {
    session.disconnected();
    greet();
    answer();
    return told(method);
  }
  /// The folders of a daemon that was greeted and told so, by its own rules.
  std::vector<std::string> folders_of_next_daemon() {
    std::vector<std::string> uris;
    const auto events = next_daemon_is_told("workspace/didChangeWorkspaceFolders");
    for (const Json& folder : greeting["params"].value("workspaceFolders", Json::array()))
      uris.push_back(folder["uri"]);
    if (uris.empty() && greeting["params"].contains("rootUri"))
      uris.push_back(greeting["params"]["rootUri"]);
    for (const Json& params : events) {
      for (const Json& folder : params["event"]["removed"]) std::erase(uris, folder["uri"]);
      for (const Json& folder : params["event"]["added"]) uris.push_back(folder["uri"]);
    }
    return uris;
  }

  Json greeting;
};

using Uris = std::vector<std::string>;

}  // namespace

TEST_CASE("BR-2 folders are remembered however many configurations follow") {
  Workspace editor(Json{{"workspaceFolders", folders({"file:///old", "file:///kept"})}});
  editor.change({"file:///new"}, {"file:///old"});
  for (int i = 1; i < 100; ++i) editor.configure({{"efim", {{"maxTokens", i}}}});
  CHECK(editor.folders_of_next_daemon() == Uris{"file:///kept", "file:///new"});
}

TEST_CASE("BR-2 a folder under another spelling of its name is the same one") {
  Workspace editor(Json{{"workspaceFolders", folders({"file:///a%20b/"})}});
  editor.change({}, {"file:///a b"});
  CHECK(editor.folders_of_next_daemon().empty());
}

TEST_CASE("BR-2 the root is a folder if there is no other, and leaves like one") {
  Workspace editor(Json{{"rootUri", "file:///root"}});
  editor.change({"file:///more"}, {});
  CHECK(editor.folders_of_next_daemon() == Uris{"file:///root", "file:///more"});
  editor.change({}, {"file:///root"});
  CHECK(editor.folders_of_next_daemon() == Uris{"file:///more"});
}

TEST_CASE("BR-2 a folder that is added before the next daemon has answered is told to it") {
  Workspace editor(Json::object());
  editor.session.disconnected();
  editor.greet();
  editor.change({"file:///late"}, {});
  editor.answer();
  const auto told = editor.told("workspace/didChangeWorkspaceFolders");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["event"]["added"][0]["uri"] == "file:///late");
}

TEST_CASE("BR-2 of folders that come and go no trace is left") {
  Workspace editor(Json::object());
  for (int i = 0; i < 1000; ++i) {
    const std::string uri = "file:///" + std::to_string(i);
    editor.change({uri}, {});
    editor.change({}, {uri});
  }
  editor.change({"file:///last", "untitled:none"}, {});
  CHECK(editor.folders_of_next_daemon() == Uris{"file:///last"});
}

TEST_CASE("BR-2 settings are merged: a later configuration may set fewer") {
  Workspace editor(Json::object());
  editor.configure({{"efim", {{"maxTokens", 9}, {"stop", "line"}}}, {"other", 1}});
  for (int i = 0; i < 100; ++i)
    editor.configure({{"efim", {{"stop", "block"}, {"maxTokens", nullptr}}}});
  editor.configure(nullptr);
  const auto told = editor.next_daemon_is_told("workspace/didChangeConfiguration");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["settings"] == Json{{"efim", {{"maxTokens", 9}, {"stop", "block"}}}});
}

TEST_CASE("BR-2 a configuration that the daemon refuses leaves the settings as they were") {
  Workspace editor(Json::object());
  editor.configure({{"efim", {{"maxTokens", 9}}}});
  editor.configure({{"efim", {{"maxTokens", -1}, {"state", true}}}});
  const auto told = editor.next_daemon_is_told("workspace/didChangeConfiguration");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["settings"]["efim"] == Json{{"maxTokens", 9}});
}
