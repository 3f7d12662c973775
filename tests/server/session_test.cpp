#include "daemon/server/session.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "daemon/config/build.h"
#include "tests/server/fake_editor.h"
#include "tests/server/open_editor.h"

using namespace efimd;
using test::FakeEditor;
using test::Json;
using test::OpenEditor;
using Next = service::Session::Next;

namespace {

int error_code(const Json& answer) { return answer.at("error").at("code").get<int>(); }

/// The message whose "text" is empty, with so many letters. As Json, unoptimized, a large one takes seconds to write.
std::string with_text(std::string message, std::size_t bytes) {
  constexpr std::string_view kEmpty = R"("text":")";
  message.insert(message.find(kEmpty) + kEmpty.size(), bytes, 'x');
  return message;
}

}  // namespace

TEST_CASE("S-1: before initialize requests get -32002 and notifications are dropped") {
  FakeEditor editor;
  editor.open("int a;");
  editor.complete(1, 0, 0);
  CHECK(error_code(editor.answer(1)) == -32002);
  CHECK(editor.host.submitted.empty());
  editor.initialize();
  editor.complete(2, 0, 0);
  CHECK(editor.host.submitted.empty());  // the document was not opened
}

TEST_CASE("S-1: status, version, stop and retire need no initialize") {
  FakeEditor editor;
  editor.request(1, "efim/status");
  editor.request(2, "efim/version");
  CHECK(editor.answer(1).at("result").at("pid") == 1);
  CHECK(editor.answer(2).at("result").at("version") == service::this_build().version);
  CHECK(service::build_of(editor.answer(2).at("result").at("build")).value().id ==
        service::this_build().id);
  editor.request(3, "efim/stop");
  CHECK(editor.answer(3).at("result").is_null());
  CHECK(editor.host.stopped);
  editor.request(4, "efim/retire");
  CHECK(editor.answer(4).at("result").is_null());
  CHECK(editor.host.retired);
}

TEST_CASE("S-1: after shutdown requests are refused and exit ends the session") {
  OpenEditor editor("int a;");
  editor.request(1, "shutdown");
  CHECK(editor.answer(1).at("result").is_null());
  editor.complete(2, 0, 0);
  CHECK(error_code(editor.answer(2)) == -32600);
  CHECK(editor.send(Json{{"jsonrpc", "2.0"}, {"method", "exit"}}) == Next::kClose);
}

TEST_CASE("initialize twice is refused and changes nothing") {
  OpenEditor editor("int a;");
  editor.request(1, "initialize", {{"capabilities", Json::object()}});
  CHECK(error_code(editor.answer(1)) == -32600);
  editor.complete(2, 0, 0);
  CHECK(editor.host.submitted.size() == 1);
}

TEST_CASE("initialize advertises statically, with one encoding and the accept command") {
  FakeEditor editor;
  editor.initialize({{"general", {{"positionEncodings", {"utf-8", "utf-16"}}}}});
  const Json result = editor.answer(0).at("result");
  const Json& capabilities = result.at("capabilities");
  CHECK(capabilities.at("positionEncoding") == "utf-8");
  CHECK(capabilities.at("inlineCompletionProvider") != false);
  CHECK(capabilities.at("textDocumentSync").at("openClose") == true);
  CHECK(capabilities.at("textDocumentSync").at("change") == 2);
  CHECK(capabilities.at("executeCommandProvider").at("commands") == Json{"efimd.accept"});
  CHECK(result.at("serverInfo").at("name") == "efimd");
}

TEST_CASE("without an offer positions are UTF-16; else the first encoding that we know") {
  FakeEditor silent, emacs;
  silent.initialize();
  CHECK(silent.answer(0).at("result").at("capabilities").at("positionEncoding") == "utf-16");
  emacs.initialize({{"general", {{"positionEncodings", {"utf-32", "utf-8", "utf-16"}}}}});
  CHECK(emacs.answer(0).at("result").at("capabilities").at("positionEncoding") == "utf-32");
}

TEST_CASE("positions count in the negotiated encoding") {
  const std::string text = "\U0001F600\u20acx\n";  // 4 + 3 + 1 bytes; 2 + 1 + 1 UTF-16 units
  OpenEditor utf16(text);
  CHECK(utf16.cursor_at(0, 2) == 4);
  CHECK(utf16.cursor_at(0, 3) == 7);
  const auto offering = [](const char* encoding) {
    return Json{{"general", {{"positionEncodings", {encoding}}}}};
  };
  OpenEditor utf8(text, offering("utf-8")), utf32(text, offering("utf-32"));
  CHECK(utf8.cursor_at(0, 7) == 7);
  CHECK(utf32.cursor_at(0, 1) == 4);
}

TEST_CASE("positions outside the document clamp: the line's end, the text's end") {
  OpenEditor editor("ab\r\ncd\r\n");
  CHECK(editor.cursor_at(0, 99) == 2);
  CHECK(editor.cursor_at(1, 2147483647) == 5);
  CHECK(editor.cursor_at(99, 5) == 6);
  CHECK(editor.cursor_at(2147483647, 2147483647) == 6);
}

TEST_CASE("changes within one didChange apply in sequence, and versions may skip") {
  OpenEditor editor("abc");
  editor.notify("textDocument/didChange",
                {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 40}}},
                 {"contentChanges",
                  {{{"range", test::range(0, 0, 0, 1)}, {"text", "X\n"}},
                   {{"range", test::range(1, 0, 1, 1)}, {"text", "YY"}},
                   {{"range", test::range(1, 3, 1, 3)}, {"text", "!"}}}}});
  editor.complete(1, 1, 0);
  CHECK(editor.text_of_last_request() == "X\nYYc!");
  editor.last_submitted().done(test::suggestion("z", 2, 2));
  CHECK(editor.sent("efim/receipt").back().at("version") == 40);
}

TEST_CASE(
    "a change without a range replaces the text; one with its ends swapped is taken as meant") {
  OpenEditor editor("abc");
  editor.change(2, nullptr, "hello");
  editor.change(3, test::range(0, 4, 0, 1), "_");
  editor.complete(1, 0, 0);
  CHECK(editor.text_of_last_request() == "h_o");
}

TEST_CASE(
    "a document is completed no more after a change that cannot be read, until it is reopened") {
  OpenEditor editor("abc");
  editor.notify("textDocument/didChange",
                {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 1796031989000}}},
                 {"contentChanges", {{{"range", test::range(0, 0, 0, 0)}, {"text", "x"}}}}});
  editor.complete(1, 0, 0);
  CHECK(editor.text_of_last_request() == "xabc");  // a version is not what it is about
  editor.notify("textDocument/didChange",
                {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 3}}},
                 {"contentChanges", {{{"range", {{"start", 0}}}, {"text", "secret text"}}}}});
  editor.complete(2, 0, 0);
  CHECK(editor.answer(2).at("result").at("items").empty());
  const std::string reason = editor.sent("efim/receipt").back().at("reason");
  CHECK(reason.find("open it again") != std::string::npos);
  CHECK(editor.sent("window/showMessage").size() == 1);
  CHECK(editor.host.logged.str().find("secret") == std::string::npos);
  editor.open("again\n");
  editor.complete(3, 0, 0);
  CHECK(editor.text_of_last_request() == "again\n");
}

TEST_CASE("a change to a document that is not open is ignored, with a line in the log") {
  FakeEditor editor;
  editor.initialize();
  editor.change(2, test::range(0, 0, 0, 0), "secret text");
  CHECK(editor.host.logged.str().find("not open") != std::string::npos);
  CHECK(editor.host.logged.str().find("secret") == std::string::npos);
  editor.complete(1, 0, 0);
  CHECK(editor.answer(1).at("result").at("items").empty());
  CHECK(editor.sent("efim/receipt").at(0).at("reason") == "the document is not open");
  CHECK(editor.host.silences == std::vector<std::string>{"the document is not open"});
}

TEST_CASE("what an answer begins with is told under the request's token, until it is answered") {
  FakeEditor editor;
  editor.initialize();
  editor.open("xy\n");
  const auto ask = [&](int id, const Json& token) {
    editor.request(id, "textDocument/inlineCompletion",
                   {{"textDocument", {{"uri", FakeEditor::kUri}}},
                    {"position", {{"line", 0}, {"character", 2}}},
                    {"context", {{"triggerKind", 2}}},
                    {"partialResultToken", token}});
  };
  ask(5, "part");
  const auto submitted = editor.last_submitted();
  REQUIRE(submitted.request.partial);
  submitted.request.partial({"a;", 2, 2});
  CHECK(editor.answers(5).empty());
  const std::vector<Json> told = editor.sent("$/progress");
  REQUIRE(told.size() == 1);
  CHECK(told[0]["token"] == "part");
  CHECK(told[0]["value"]["items"][0]["insertText"] == "a;");
  CHECK(told[0]["value"]["items"][0]["range"] == test::range(0, 2, 0, 2));
  submitted.done(test::suggestion("a;b;", 2, 2));
  CHECK(editor.answer(5)["result"]["items"][0]["insertText"] == "a;b;");
  submitted.request.partial({"a;b", 2, 2});
  CHECK(editor.sent("$/progress").size() == 1);
  ask(6, nullptr);
  CHECK_FALSE(editor.last_submitted().request.partial);
}

TEST_CASE("efim/findDocument gives another session's document that has the lines") {
  FakeEditor editor;
  editor.initialize();
  const auto find = [&](int id) {
    editor.request(id, "efim/findDocument", {{"above", "int first_line;\r\n"}, {"below", ""}});
    return editor.answer(id)["result"];
  };
  CHECK(find(5) == nullptr);
  CHECK(editor.host.sought.above == "int first_line;\n");
  const text::Document other("int first_line;\nint second;\n");
  editor.host.found = service::FoundDocument{16, "file:///src/b.cpp", "cpp", other.snapshot()};
  CHECK(find(6) == Json{{"uri", "file:///src/b.cpp"},
                        {"languageId", "cpp"},
                        {"text", "int first_line;\nint second;\n"}});
}

TEST_CASE("a document is found by its lines, the one that has more of them first") {
  FakeEditor editor;
  editor.initialize();
  editor.open("int the_first_line;\nint a;\n", "file:///src/a.cpp");
  editor.open("int the_first_line;\nint b;\nint the_last_line_of_it;\n", "file:///src/b.cpp");
  const auto found = [&](std::string above, std::string below) {
    std::optional<service::FoundDocument> best;
    editor.session->find_document({std::move(above), std::move(below)}, best);
    return best ? best->uri : std::string();
  };
  CHECK(found("int the_first_line;\nint a;\n", "") == "file:///src/a.cpp");
  CHECK(found("int the_first_line;\nint b;\n", "int the_last_line_of_it;\n") ==
        "file:///src/b.cpp");
  CHECK(found("int another_line_of_it;\n", "").empty());
  std::string large = "int one_of_many_lines;\n";
  large.resize(lsp::FindDocumentParams::kTextBytesMax, '\n');
  editor.open(large, "file:///src/c.cpp");
  CHECK(found("int one_of_many_lines;\n", "") == "file:///src/c.cpp");
  editor.open(large + "\n", "file:///src/c.cpp");
  CHECK(found("int one_of_many_lines;\n", "").empty());  // the answer would be too long
  CHECK(found("}\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "").empty());  // too many texts have it
}

TEST_CASE("what the editor has selected and whether it was asked by hand travel with a request") {
  OpenEditor editor("\U0001F600 pu()\n");
  editor.complete(1, 0, 5);
  CHECK_FALSE(editor.last_submitted().request.selected);
  CHECK_FALSE(editor.last_submitted().request.by_hand);
  CHECK(editor.last_submitted().request.language_id == "cpp");
  editor.request(
      2, "textDocument/inlineCompletion",
      {{"textDocument", {{"uri", FakeEditor::kUri}}},
       {"position", {{"line", 0}, {"character", 5}}},
       {"context",
        {{"triggerKind", 1},
         {"selectedCompletionInfo", {{"range", test::range(0, 3, 0, 5)}, {"text", "push"}}}}}});
  const completion::Request& request = editor.last_submitted().request;
  CHECK(request.by_hand);
  REQUIRE(request.selected);
  CHECK(request.selected->begin == 5);
  CHECK(request.selected->end == 7);
  CHECK(request.selected->text == "push");
}

TEST_CASE("further suggestions follow the first in the list") {
  OpenEditor editor("foo()\n");
  editor.complete(1, 0, 4);
  completion::Outcome outcome = test::suggestion("a)", 4, 5);
  outcome.more.push_back({"b)", 4, 5});
  editor.last_submitted().done(outcome);
  const Json items = editor.answer(1).at("result").at("items");
  REQUIRE(items.size() == 2);
  CHECK(items[0].at("insertText") == "a)");
  CHECK(items[1].at("insertText") == "b)");
  CHECK(items[1].at("range") == test::range(0, 4, 0, 5));
}

TEST_CASE("an item has insertText, filterText, its range and the accept command") {
  OpenEditor editor("foo(\U0001F600)\n");
  editor.complete(1, 0, 6);
  CHECK(editor.last_submitted().request.cursor == 8);
  editor.last_submitted().done(test::suggestion("a, b)", 8, 9));
  const Json items = editor.answer(1).at("result").at("items");
  REQUIRE(items.size() == 1);
  CHECK(items[0].at("insertText") == "a, b)");
  CHECK(items[0].at("filterText") == "a, b)");
  CHECK(items[0].at("range") == test::range(0, 6, 0, 7));
  CHECK(items[0].at("command").at("command") == "efimd.accept");
  editor.request(
      2, "workspace/executeCommand",
      {{"command", "efimd.accept"}, {"arguments", items[0].at("command").at("arguments")}});
  CHECK(editor.answer(2).at("result").is_null());
  CHECK(editor.session->info().accepted == 1);
}

TEST_CASE("S-2: a newer request answers the older with null at once and stops its work") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  auto older = editor.last_submitted();
  editor.complete(2, 0, 1);
  CHECK(editor.answer(1).at("result").is_null());
  CHECK(older.request.stop.stop_requested());
  CHECK_FALSE(editor.last_submitted().request.stop.stop_requested());

  older.done(test::suggestion("late", 0, 0));
  editor.last_submitted().done(test::suggestion("now", 1, 1));
  CHECK(editor.answer(1).at("result").is_null());
  CHECK(editor.answer(2).at("result").at("items")[0].at("insertText") == "now");
}

TEST_CASE("requests for different documents do not supersede one another") {
  OpenEditor editor("int a;");
  editor.open("int b;", "file:///src/b.cpp");
  editor.complete(1, 0, 0);
  editor.complete(2, 0, 0, "file:///src/b.cpp");
  CHECK(editor.answers(1).empty());
  CHECK_FALSE(editor.host.submitted.front().request.stop.stop_requested());
}

TEST_CASE("S-3: no suggestion is an empty list with its reason in the receipt") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  editor.last_submitted().done(test::silence("the model is loading"));
  CHECK(editor.answer(1).at("result") == Json{{"items", Json::array()}});
  CHECK(editor.sent("efim/receipt").at(0).at("reason") == "the model is loading");
}

TEST_CASE("cancelling stops the work and answers -32800, once") {
  OpenEditor editor("int a;");
  editor.complete("one", 0, 0);
  editor.notify("$/cancelRequest", {{"id", "one"}});
  CHECK(error_code(editor.answer("one")) == -32800);
  CHECK(editor.last_submitted().request.stop.stop_requested());
  auto outcome = test::silence("");
  outcome.superseded = true;
  editor.last_submitted().done(outcome);
  CHECK(editor.answers("one").size() == 1);
  editor.notify("$/cancelRequest", {{"id", "one"}});
  editor.notify("$/cancelRequest", {{"id", 55}});
  CHECK(editor.answers("one").size() == 1);
}

TEST_CASE("an outcome that the service itself superseded is answered null") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  auto outcome = test::silence("");
  outcome.superseded = true;
  editor.last_submitted().done(outcome);
  CHECK(editor.answer(1).at("result").is_null());
}

TEST_CASE("closing a document stops its request and tells the completion service") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  editor.notify("textDocument/didClose", {{"textDocument", {{"uri", FakeEditor::kUri}}}});
  CHECK(editor.answer(1).at("result").is_null());
  CHECK(editor.last_submitted().request.stop.stop_requested());
  REQUIRE(editor.host.closed.size() == 1);
  CHECK(editor.host.closed[0] == completion::DocumentKey{7, FakeEditor::kUri});
  editor.complete(2, 0, 0);
  CHECK(editor.answer(2).at("result").at("items").empty());
}

TEST_CASE("shutdown answers what is pending before it answers itself") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  editor.request(2, "shutdown");
  CHECK(editor.answer(1).at("result").is_null());
  CHECK(editor.messages.back().at("id") == 2);
}

TEST_CASE("initializationOptions.efim goes over the configuration, request by request") {
  FakeEditor editor;
  editor.initialize(Json::object(), {{"maxTokens", 5}, {"stop", "line"}, {"temperature", 0.5}});
  editor.open("int a;");
  editor.complete(1, 0, 0);
  const completion::Options& options = editor.last_submitted().request.options;
  CHECK(options.tokens_max == 5);
  CHECK(options.stop == completion::StopRule::kLine);
  CHECK(options.temperature == 0.5F);
  editor.notify("workspace/didChangeConfiguration", {{"settings", {{"efim", {{"maxTokens", 9}}}}}});
  editor.complete(2, 0, 0);
  CHECK(editor.last_submitted().request.options.tokens_max == 9);
}

TEST_CASE("settings of the wrong type are shown with what they must be, and nothing changes") {
  FakeEditor editor;
  editor.initialize(Json::object(), {{"maxTokens", 5}});
  editor.open("int a;");
  editor.notify("workspace/didChangeConfiguration",
                {{"settings", {{"efim", {{"maxTokens", "many"}}}}}});
  const auto shown = editor.sent("window/showMessage");
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].at("message").get<std::string>().find("maxTokens must be an integer") !=
        std::string::npos);
  editor.complete(1, 0, 0);
  CHECK(editor.last_submitted().request.options.tokens_max == 5);
}

TEST_CASE("unknown requests get -32601; unknown and $/ notifications are ignored") {
  OpenEditor editor("int a;");
  editor.request(1, "textDocument/hover", Json::object());
  CHECK(error_code(editor.answer(1)) == -32601);
  const std::size_t before = editor.messages.size();
  editor.notify("$/setTrace", {{"value", "off"}});
  editor.notify("textDocument/didSave", Json::object());
  CHECK(editor.messages.size() == before);
}

TEST_CASE("an unknown command and broken params are refused, and the session goes on") {
  OpenEditor editor("int a;");
  editor.request(1, "workspace/executeCommand", {{"command", "rm"}});
  editor.request(2, "textDocument/inlineCompletion", {{"textDocument", 5}});
  CHECK(error_code(editor.answer(1)) == -32602);
  CHECK(error_code(editor.answer(2)) == -32602);
  editor.notify("textDocument/didChange", {{"textDocument", {{"uri", 3}}}});
  editor.complete(3, 0, 0);
  CHECK(editor.host.submitted.size() == 1);
}

TEST_CASE("S-4: bodies that are no message are answered with an error and the session goes on") {
  OpenEditor editor("int a;");
  CHECK(editor.send(std::string("{\"jsonrpc\": tru")) == Next::kGoOn);
  CHECK(error_code(editor.messages.back()) == -32700);
  CHECK(editor.send(std::string("[1, 2]")) == Next::kGoOn);
  CHECK(error_code(editor.messages.back()) == -32600);
  editor.complete(1, 0, 0);
  CHECK(editor.host.submitted.size() == 1);
}

TEST_CASE("a document past the limit is answered empty with the reason, until it is reopened",
          "[one-thread]") {
  OpenEditor editor("int a;");
  editor.send(with_text(
      R"({"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///src/a.cpp","version":2},)"
      R"("contentChanges":[{"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":0}},"text":""}]}})",
      text::kDocumentBytesMax));
  editor.change(3, test::range(0, 0, 0, 0), "y");
  editor.complete(1, 0, 0);
  CHECK(editor.answer(1).at("result").at("items").empty());
  const std::string reason = editor.sent("efim/receipt").at(0).at("reason");
  CHECK(reason.find("over the limit") != std::string::npos);
  CHECK(editor.host.silences == std::vector<std::string>{"the document is too large"});
  const auto shown = editor.sent("window/showMessage");
  REQUIRE(shown.size() == 1);
  CHECK(shown[0].at("message").get<std::string>().find("/src/a.cpp: document: ") !=
        std::string::npos);
#ifndef EFIMD_SANITIZED  // which takes 10 s for such a text
  editor.send(with_text(
      R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///src/a.cpp",)"
      R"("languageId":"cpp","version":1,"text":""}}})",
      text::kDocumentBytesMax + 1));
  CHECK(editor.sent("window/showMessage").size() == 1);  // once for a document
#endif
  editor.open("small");
  editor.complete(2, 0, 0);
  CHECK(editor.text_of_last_request() == "small");
}

TEST_CASE("a session that ended stops its work, closes its documents and sends nothing more") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  const std::size_t before = editor.messages.size();
  editor.session->end();
  CHECK(editor.last_submitted().request.stop.stop_requested());
  CHECK(editor.host.closed.size() == 1);
  editor.last_submitted().done(test::suggestion("x", 0, 0));
  CHECK(editor.messages.size() == before);
  auto late = editor.last_submitted();
  editor.session.reset();
  late.done(test::suggestion("x", 0, 0));  // finds nobody, through its weak pointer
  CHECK(editor.messages.size() == before);
}

TEST_CASE("names from the editor cannot write control characters into the log") {
  FakeEditor editor;
  editor.initialize();
  editor.notify("textDocument/didChange",
                {{"textDocument", {{"uri", "file:///a%1b[2J\x1b]0;"}, {"version", 1}}},
                 {"contentChanges", Json::array()}});
  editor.notify("x\n\x1b[31m", Json::object());
  CHECK(editor.host.logged.str().find('\x1b') == std::string::npos);
}
