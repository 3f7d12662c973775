#include "daemon/client/bridge_session.h"

#include <catch2/catch.hpp>

#include "lsp/json_rpc.h"
#include "tests/client/bridge_harness.h"

using namespace efimd;
using namespace efimd::test;

TEST_CASE("BR-1 initialize is answered under the editor's id, once") {
  Harness h;
  h.session.editor_says(request(17, "initialize"));
  CHECK(h.session.wants_daemon());
  h.connect();
  const auto answers = h.for_editor();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0]["id"] == 17);
  CHECK(answers[0]["result"]["capabilities"]["positionEncoding"] == "utf-16");
  h.session.disconnected();
  h.connect();
  CHECK(h.for_editor().empty());
}

TEST_CASE("a daemon that ends before its initialize answer is looked for again") {
  Harness h;
  h.session.editor_says(request(1, "initialize"));
  h.session.connected();
  h.session.disconnected();
  CHECK(h.session.wants_daemon());
  CHECK(h.for_editor().empty());
  h.connect();
  CHECK(h.for_editor().size() == 1);
}

TEST_CASE("BR-2 a new daemon is told the documents as they are now, then what was unanswered") {
  Harness h;
  h.start("int a;\nint b;\n");
  h.session.editor_says(typing(1, 5, "cd", 2));
  h.session.editor_says(asking(5));
  h.session.editor_says(asking(6));
  CHECK(methods(h.for_daemon()) == Names{"textDocument/didChange", "textDocument/inlineCompletion",
                                         "textDocument/inlineCompletion"});
  h.session.daemon_says(lsp::response_body(std::int64_t{5}, nullptr));
  CHECK(h.for_editor().size() == 1);
  h.session.disconnected();
  const auto told = h.connect();
  CHECK(methods(told) ==
        Names{"initialized", "textDocument/didOpen", "textDocument/inlineCompletion"});
  CHECK(told[1]["params"]["textDocument"]["text"] == "int a;\nint bcd;\n");
  CHECK(told[1]["params"]["textDocument"]["version"] == 2);
  CHECK(told[1]["params"]["textDocument"]["languageId"] == "c");
  CHECK(told[2]["id"] == 6);
  CHECK(h.for_editor().empty());
}

TEST_CASE("BR-2 changes count in the encoding that the daemon chose") {
  const std::vector<std::pair<std::string, int>> encodings = {
      {"utf-8", 4}, {"utf-16", 2}, {"utf-32", 1}};
  for (const auto& [encoding, character] : encodings) {
    CAPTURE(encoding);
    Harness h;
    h.encoding = encoding;
    h.start("\U0001F600b");
    h.session.editor_says(typing(0, character, "a", 2));
    h.session.disconnected();
    h.session.editor_says(asking(3));
    CHECK(h.connect()[1]["params"]["textDocument"]["text"] == "\U0001F600ab");
  }
}

TEST_CASE("BR-2 removals, replacements and changes in sequence are in the replayed text") {
  Harness h;
  h.start("one\r\ntwo\r\nthree\r\n");
  const auto step = [](int line, int from, int to_line, int to, const char* text) {
    return Json{{"range",
                 {{"start", {{"line", line}, {"character", from}}},
                  {"end", {{"line", to_line}, {"character", to}}}}},
                {"text", text}};
  };
  h.session.editor_says(
      notification("textDocument/didChange", {{"textDocument", {{"uri", kFile}, {"version", 2}}},
                                              {"contentChanges",
                                               {step(0, 3, 1, 3, ""), step(0, 1, 0, 2, "N"),
                                                step(1, 5, 1, 1, "!"), step(9, 9, 9, 9, "$")}}}));
  h.session.disconnected();
  h.session.editor_says(asking(3));
  CHECK(h.connect()[1]["params"]["textDocument"]["text"] == "oNe\nt!\n$");
  h.session.editor_says(
      notification("textDocument/didChange", {{"textDocument", {{"uri", kFile}, {"version", 3}}},
                                              {"contentChanges", {{{"text", "anew"}}}}}));
  h.session.disconnected();
  CHECK(h.connect()[1]["params"]["textDocument"]["text"] == "anew");
}

TEST_CASE("what the editor says while no daemon lives is replayed with the rest") {
  Harness h;
  h.start("ab");
  h.session.disconnected();
  h.session.editor_says(typing(0, 2, "c", 2));
  h.session.editor_says(notification("workspace/didChangeConfiguration",
                                     {{"settings", {{"efim", {{"state", true}}}}}}));
  h.session.editor_says(asking(9));
  CHECK(h.for_daemon().empty());
  const auto told = h.connect();
  CHECK(methods(told) == Names{"initialized", "workspace/didChangeConfiguration",
                               "textDocument/didOpen", "textDocument/inlineCompletion"});
  CHECK(told[2]["params"]["textDocument"]["text"] == "abc");
}

TEST_CASE("closed documents, changes to unopened ones and malformed params are not replayed") {
  Harness h;
  h.start();
  h.session.editor_says(
      notification("textDocument/didClose", {{"textDocument", {{"uri", kFile}}}}));
  h.session.editor_says(typing(0, 0, "x", 2));
  h.session.editor_says(notification("textDocument/didOpen", {{"textDocument", 3}}));
  h.session.editor_says(notification("textDocument/didChange"));
  h.session.disconnected();
  CHECK(methods(h.connect()) == Names{"initialized"});
}

TEST_CASE("an idle editor does not bring back a daemon that ended; its next word does") {
  Harness h;
  h.start();
  h.session.disconnected();
  CHECK_FALSE(h.session.wants_daemon());
  h.session.editor_says(typing(0, 0, "x", 2));
  CHECK(h.session.wants_daemon());
}

TEST_CASE("who asks for the status of a daemon that ended hears that there is none") {
  Harness h;
  h.start();
  h.session.editor_says(request(2, "efim/status", nullptr));
  h.session.disconnected();
  h.session.editor_says(request(3, "efim/status", nullptr));
  CHECK((h.for_editor().size() == 2 && !h.session.wants_daemon()));
}

TEST_CASE("who waits for the status brings the daemon back") {
  Harness h;
  h.session.wait_for_status();
  h.start();
  h.session.editor_says(request(2, "efim/status", nullptr));
  h.session.disconnected();
  CHECK((h.for_editor().empty() && h.session.wants_daemon()));
}

TEST_CASE("a request that was waiting brings the daemon back at once") {
  Harness h;
  h.start();
  h.session.editor_says(asking(2));
  h.session.disconnected();
  CHECK(h.session.wants_daemon());
}

TEST_CASE("BR-5 what several daemons say to the user is shown once") {
  Harness h;
  h.start();
  const std::string bad_model =
      notification("window/showMessage", lsp::message_params(lsp::MessageType::kError, "no model"));
  h.session.daemon_says(bad_model);
  h.session.disconnected();
  h.connect();
  h.session.daemon_says(bad_model);
  CHECK(methods(h.for_editor()) == Names{"window/showMessage"});
}

TEST_CASE("giving up answers what waits with nothing and says so once") {
  Harness h;
  h.start();
  h.session.editor_says(asking(2));
  h.session.editor_says(request(3, "workspace/executeCommand"));
  h.session.disconnected();
  h.session.give_up("it does not start");
  auto said = h.for_editor();
  REQUIRE(said.size() == 3);
  CHECK(said[0]["id"] == 2);
  CHECK(said[0]["result"]["items"] == Json::array());
  CHECK(said[1]["id"] == 3);
  CHECK(said[1]["result"].is_null());
  CHECK(said[2]["method"] == "window/showMessage");
  CHECK(said[2]["params"]["type"] == 2);
  CHECK_FALSE(h.session.wants_daemon());
  h.session.editor_says(asking(4));
  CHECK(h.session.wants_daemon());
  h.session.give_up("it does not start");
  said = h.for_editor();
  REQUIRE(said.size() == 1);
  CHECK(said[0]["id"] == 4);
}

TEST_CASE("no daemon at initialize is an error with the reason, and initialize may come again") {
  Harness h;
  h.session.editor_says(request(1, "initialize"));
  h.session.give_up("the folder is open to others");
  const auto said = h.for_editor();
  REQUIRE(said.size() == 1);
  CHECK(said[0]["id"] == 1);
  CHECK(said[0]["error"]["message"].get<std::string>().find("open to others") != std::string::npos);
  CHECK_FALSE(h.session.wants_daemon());
  h.session.editor_says(request(2, "initialize"));
  h.connect();
  CHECK(h.for_editor()[0]["id"] == 2);
}

TEST_CASE("a request that was cancelled dies with its daemon, as cancelled") {
  Harness h;
  h.start();
  h.session.editor_says(asking(2));
  h.session.editor_says(notification("$/cancelRequest", {{"id", 2}}));
  CHECK(methods(h.for_daemon()).back() == "$/cancelRequest");
  CHECK(h.for_editor().empty());
  h.session.disconnected();
  const auto said = h.for_editor();
  REQUIRE(said.size() == 1);
  CHECK(said[0]["error"]["code"] == -32800);
  CHECK(methods(h.connect()) == Names{"initialized", "textDocument/didOpen"});
}

TEST_CASE("a request that is cancelled while no daemon lives is answered at once") {
  Harness h;
  h.start();
  h.session.disconnected();
  h.session.editor_says(asking(2));
  h.session.editor_says(notification("$/cancelRequest", {{"id", 2}}));
  CHECK(h.for_editor().at(0)["error"]["code"] == -32800);
}

TEST_CASE("BR-3 the daemon's requests get new ids, and late answers go nowhere") {
  Harness h;
  h.start();
  h.session.daemon_says(request(1, "window/workDoneProgress/create"));
  const Json first = h.for_editor().at(0);
  CHECK(first["id"] != 1);
  h.session.disconnected();
  h.session.editor_says(asking(2));
  h.connect();
  h.session.daemon_says(request(1, "window/workDoneProgress/create"));
  const Json second = h.for_editor().at(0);
  CHECK(second["id"] != first["id"]);
  h.session.editor_says(Json{{"jsonrpc", "2.0"}, {"id", first["id"]}, {"result", nullptr}}.dump());
  CHECK(h.for_daemon().empty());
  h.session.editor_says(Json{{"jsonrpc", "2.0"}, {"id", second["id"]}, {"result", nullptr}}.dump());
  const auto answers = h.for_daemon();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0]["id"] == 1);
}

TEST_CASE("BR-3 progress that a daemon began is ended when it is gone") {
  Harness h;
  h.start();
  h.session.daemon_says(notification(
      "$/progress", {{"token", "load"}, {"value", {{"kind", "begin"}, {"title", "t"}}}}));
  h.session.daemon_says(
      notification("$/progress", {{"token", 5}, {"value", {{"kind", "begin"}, {"title", "t"}}}}));
  h.session.daemon_says(notification("$/progress", {{"token", 5}, {"value", {{"kind", "end"}}}}));
  h.for_editor();
  h.session.disconnected();
  const auto said = h.for_editor();
  REQUIRE(said.size() == 1);
  CHECK(said[0]["params"]["token"] == "load");
  CHECK(said[0]["params"]["value"]["kind"] == "end");
}

TEST_CASE("a new daemon with another position encoding is refused") {
  Harness h;
  h.start();
  h.session.disconnected();
  h.encoding = "utf-8";
  h.session.editor_says(asking(2));
  CHECK(h.connect().empty());
  CHECK(h.session.hang_up_reason());
}

TEST_CASE("a daemon that refuses the editor's initialize is quoted to it") {
  Harness h;
  h.session.editor_says(request(4, "initialize"));
  h.session.connected();
  const auto greeting = h.for_daemon();
  h.session.daemon_says(Json{{"jsonrpc", "2.0"},
                             {"id", greeting[0]["id"]},
                             {"error", {{"code", -32602}, {"message", "params.processId"}}}}
                            .dump());
  const auto said = h.for_editor();
  REQUIRE(said.size() == 1);
  CHECK(said[0]["id"] == 4);
  CHECK(said[0]["error"]["code"] == -32602);
  CHECK(h.session.hang_up_reason());
}

TEST_CASE("nonsense from the daemon ends the connection, nonsense from the editor is answered") {
  Harness h;
  h.start();
  h.session.editor_says("{nonsense");
  CHECK(h.for_editor().at(0)["error"]["code"] == -32700);
  CHECK_FALSE(h.session.hang_up_reason());
  h.session.daemon_says("{nonsense");
  CHECK(h.session.hang_up_reason());
}

TEST_CASE("requests before initialize are refused without a daemon") {
  Harness h;
  h.session.editor_says(asking(1));
  CHECK(h.for_editor().at(0)["error"]["code"] == -32002);
  h.session.editor_says(opening("x"));
  CHECK_FALSE(h.session.wants_daemon());
}

TEST_CASE("exit is 0 after shutdown and 1 without") {
  Harness with;
  with.start();
  with.session.editor_says(request(8, "shutdown", nullptr));
  CHECK(methods(with.for_daemon()) == Names{"shutdown"});
  with.session.editor_says(notification("exit"));
  CHECK(with.session.exit_code() == 0);
  Harness without;
  without.start();
  without.session.editor_says(notification("exit"));
  CHECK(without.session.exit_code() == 1);
}

TEST_CASE("a shutdown is answered also when the daemon is or goes away, and starts none") {
  Harness h;
  h.start();
  h.session.editor_says(asking(7));
  h.session.editor_says(request(8, "shutdown", nullptr));
  h.session.disconnected();
  CHECK(h.for_editor().size() == 2);
  CHECK_FALSE(h.session.wants_daemon());
  h.session.editor_says(asking(9));
  CHECK(h.for_editor().at(0)["error"]["code"] == -32600);
  Harness without;
  without.start();
  without.session.disconnected();
  without.session.editor_says(asking(2));
  without.session.editor_says(request(3, "shutdown", nullptr));
  CHECK(without.for_editor().size() == 2);
  CHECK_FALSE(without.session.wants_daemon());
  Harness fresh;
  fresh.session.editor_says(request(1, "shutdown", nullptr));
  CHECK(fresh.for_editor().at(0)["result"].is_null());
}

TEST_CASE("an initialize after a shutdown begins the session") {
  Harness fresh;
  fresh.session.editor_says(request(1, "shutdown", nullptr));
  fresh.for_editor();
  fresh.session.editor_says(request(2, "initialize"));
  CHECK(fresh.session.wants_daemon());
  fresh.connect();
  CHECK(fresh.for_editor().at(0)["result"].is_object());
}

TEST_CASE("BR-1 a shutdown that comes before the answer to initialize leaves none unanswered") {
  Harness h;
  h.session.editor_says(request(1, "initialize"));
  const bool greeting = GENERATE(false, true);
  CAPTURE(greeting);
  if (greeting) h.session.connected();
  h.session.editor_says(request(2, "shutdown", nullptr));
  const auto said = h.for_editor();
  REQUIRE(said.size() == 2);
  CHECK(said[0]["id"] == 1);
  CHECK(said[0]["error"]["code"] == -32802);
  CHECK(said[1]["id"] == 2);
  CHECK(said[1]["result"].is_null());
  CHECK_FALSE(h.session.wants_daemon());
  if (!greeting) return;
  h.session.daemon_says(Json{{"jsonrpc", "2.0"},
                             {"id", h.for_daemon().at(0)["id"]},
                             {"result", {{"capabilities", Json::object()}}}}
                            .dump());
  CHECK(h.for_editor().empty());
}

TEST_CASE("more unanswered requests than the limit are turned away") {
  Harness h;
  h.start();
  for (int i = 0; i < static_cast<int>(BridgeSession::kPendingMax); ++i)
    h.session.editor_says(asking(100 + i));
  CHECK(h.for_editor().empty());
  h.session.editor_says(asking(5000));
  const auto said = h.for_editor();
  REQUIRE(said.size() == 1);
  CHECK(said[0]["id"] == 5000);
  CHECK(said[0]["error"]["code"] == -32802);
}
