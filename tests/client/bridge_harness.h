#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "daemon/client/bridge_session.h"
#include "lsp/json_rpc.h"
#include "lsp/protocol.h"
#include "tests/support/json_of.h"

namespace efimd::test {

using lsp::Json;
using service::BridgeSession;

inline constexpr char kFile[] = "file:///a.c";

inline std::string request(int id, const char* method, Json params = Json::object()) {
  return lsp::request_body(std::int64_t{id}, method, std::move(params));
}
inline std::string notification(const char* method, Json params = Json::object()) {
  return lsp::notification_body(method, std::move(params));
}
inline std::string opening(const char* text, int version = 1) {
  return notification(
      "textDocument/didOpen",
      {{"textDocument",
        {{"uri", kFile}, {"languageId", "c"}, {"version", version}, {"text", text}}}});
}
inline std::string typing(int line, int character, const char* text, int version) {
  const Json at = {{"line", line}, {"character", character}};
  return notification(
      "textDocument/didChange",
      {{"textDocument", {{"uri", kFile}, {"version", version}}},
       {"contentChanges", {{{"range", {{"start", at}, {"end", at}}}, {"text", text}}}}});
}
inline std::string asking(int id) {
  return request(
      id, "textDocument/inlineCompletion",
      {{"textDocument", {{"uri", kFile}}}, {"position", {{"line", 0}, {"character", 0}}}});
}

inline std::vector<Json> parsed(const std::vector<std::string>& bodies) {
  std::vector<Json> values;
  for (const std::string& body : bodies) values.push_back(test::json_of(body));
  return values;
}

/// A session whose daemon answers initialize as this test wants.
struct Harness {
  BridgeSession session;
  std::string encoding = "utf-16";

  std::vector<Json> for_editor() { return parsed(session.take_for_editor()); }
  std::vector<Json> for_daemon() { return parsed(session.take_for_daemon()); }

  /// Connects and answers the greeting; what the daemon is told after it.
  std::vector<Json> connect() {
    session.connected();
    const auto greeting = for_daemon();
    REQUIRE(greeting.size() == 1);
    REQUIRE(greeting[0]["method"] == "initialize");
    session.daemon_says(Json{{"jsonrpc", "2.0"},
                             {"id", greeting[0]["id"]},
                             {"result", {{"capabilities", {{"positionEncoding", encoding}}}}}}
                            .dump());
    return for_daemon();
  }

  /// An editor that said initialize, initialized and opened a document.
  void start(const char* text = "int a;\n") {
    session.editor_says(request(1, "initialize", {{"processId", 7}}));
    connect();
    session.editor_says(notification("initialized"));
    session.editor_says(opening(text));
    for_editor();
    for_daemon();
  }
};

inline std::vector<std::string> methods(const std::vector<Json>& messages) {
  std::vector<std::string> names;
  for (const Json& message : messages) names.push_back(message.value("method", "(answer)"));
  return names;
}

using Names = std::vector<std::string>;

}  // namespace efimd::test
