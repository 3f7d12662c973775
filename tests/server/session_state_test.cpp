// What a session tells beyond LSP: efim/state, receipts, counts for the status, and messages to the user.
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "daemon/server/session.h"
#include "tests/server/fake_editor.h"
#include "tests/server/open_editor.h"

using namespace efimd;
using test::FakeEditor;
using test::Json;
using test::OpenEditor;

TEST_CASE("what config.toml has that is passed over is shown to the user") {
  FakeEditor editor;
  editor.host.settings =
      service::parse_config("[daemon]\nidle_exit_s = \"soon\"\nx = 1\n", "/a/long/path/c.toml");
  editor.initialize();
  const auto shown = editor.sent("window/showMessage");
  REQUIRE(shown.size() == 1);
  const std::string text = shown[0].at("message");
  CHECK(text.starts_with("c.toml:2: daemon.idle_exit_s must be"));
  for (const char* part : {"(and 1 more", "efimd doctor"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("efim/state follows the model and the requests, each change once, where it is wanted") {
  FakeEditor editor;
  editor.host.model = {completion::EngineState::kLoading, 0.251, {}};
  editor.initialize(Json::object(), {{"state", true}});
  editor.open("int a;");
  const auto last = [&] { return editor.sent("efim/state").back(); };
  CHECK(last() == Json{{"name", "loading"}, {"progress", 0.25}, {"message", ""}});
  editor.host.model.progress = 0.252;  // not worth a message
  editor.session->model_changed();
  CHECK(editor.sent("efim/state").size() == 1);

  editor.host.model = {completion::EngineState::kReady, 1.0, {}};
  editor.session->model_changed();
  editor.complete(1, 0, 0);
  CHECK(last().at("name") == "thinking");
  editor.complete(2, 0, 1);  // takes the place of the first: still thinking
  editor.last_submitted().done(test::suggestion("z", 1, 1));
  CHECK(last().at("name") == "ready");
  CHECK(editor.sent("efim/state").size() == 4);

  editor.host.model = {completion::EngineState::kFailed, 1.0, "no such file"};
  editor.session->model_changed();
  CHECK(last() == Json{{"name", "failed"}, {"progress", 1.0}, {"message", "no such file"}});
}

TEST_CASE("without the option there is no efim/state") {
  OpenEditor editor("int a;");
  editor.complete(1, 0, 0);
  CHECK(editor.sent("efim/state").empty());
}

TEST_CASE("what an editor shows, looks at and takes in part is counted for the status") {
  OpenEditor editor("int a;");
  const Json document = {{"uri", FakeEditor::kUri}};
  editor.notify("efim/didFocus", {{"textDocument", document}});
  editor.notify("efim/didShow", {{"textDocument", document}});
  editor.notify("efim/didShow", {{"textDocument", 3}});
  editor.notify("efim/didDismiss", {{"textDocument", document}});
  editor.notify("efim/didDismiss", {{"textDocument", {{"uri", "file:///not/open"}}}});
  editor.notify("efim/didPartiallyAccept", {{"textDocument", document}, {"acceptedLength", 4}});
  CHECK(editor.session->info().focus == FakeEditor::kUri);
  CHECK(editor.session->info().shown == 1);
  CHECK(editor.session->info().dismissed == 1);
  REQUIRE(editor.host.dismissed.size() == 1);
  CHECK(editor.host.dismissed.front().document.uri == FakeEditor::kUri);
  CHECK(editor.session->info().accepted_partly == 1);
  editor.notify("efim/didFocus", {{"textDocument", {{"uri", "file:///not/open"}}}});
  CHECK(editor.session->info().focus == FakeEditor::kUri);
  REQUIRE(editor.host.focused.size() == 1);
  CHECK(editor.host.focused.front().uri == FakeEditor::kUri);
  editor.notify("textDocument/didClose", {{"textDocument", document}});
  CHECK(editor.session->info().focus.empty());
}

TEST_CASE("the model's loading is shown as progress where the editor takes it") {
  FakeEditor editor;
  editor.host.model = {completion::EngineState::kLoading, 0.25, {}};
  editor.initialize({{"window", {{"workDoneProgress", true}}}});
  REQUIRE(editor.sent("window/workDoneProgress/create").size() == 1);
  CHECK(editor.sent("$/progress").empty());  // not before the editor agreed
  const Json create = editor.messages.back();
  editor.send(Json{{"jsonrpc", "2.0"}, {"id", create.at("id")}, {"result", nullptr}});
  editor.host.model.progress = 0.5;
  editor.session->model_changed();
  editor.host.model.state = completion::EngineState::kReady;
  editor.session->model_changed();
  editor.session->model_changed();
  std::vector<std::string> kinds;
  for (const Json& params : editor.sent("$/progress")) {
    CHECK(params.at("token") == create.at("params").at("token"));
    kinds.push_back(params.at("value").at("kind"));
  }
  CHECK(kinds == std::vector<std::string>{"begin", "report", "report", "end"});
}

TEST_CASE("a model that fails is shown to the user once, and requests go on being answered") {
  OpenEditor editor("int a;");
  editor.host.model = {completion::EngineState::kFailed, 0, "x.gguf: cannot be opened"};
  editor.session->model_changed();
  editor.session->model_changed();
  REQUIRE(editor.sent("window/showMessage").size() == 1);
  const std::string message = editor.sent("window/showMessage")[0].at("message");
  CHECK(message.find("x.gguf: cannot be opened") != std::string::npos);
  editor.complete(1, 0, 0);
  CHECK(editor.host.submitted.size() == 1);
}

TEST_CASE("a receipt has the fields of the design, after the answer") {
  OpenEditor editor("int a;");
  editor.complete(9, 0, 3);
  editor.last_submitted().done(test::suggestion("x", 3, 3));
  const Json receipt = editor.messages.back().at("params");
  CHECK(receipt == Json{{"request", 9},
                        {"uri", FakeEditor::kUri},
                        {"version", 1},
                        {"event", "type"},
                        {"source", "engine"},
                        {"promptTokens", 12},
                        {"reusedTokens", 10},
                        {"evaluatedTokens", 2},
                        {"generatedTokens", 3},
                        {"healedTokens", 0},
                        {"restoredTokens", 0},
                        {"steps", 0},
                        {"draftedTokens", 0},
                        {"acceptedTokens", 0},
                        {"queueMs", 0.0},
                        {"firstTokenMs", 0.0},
                        {"totalMs", 0.0}});
}

TEST_CASE("without the option there are no receipts") {
  FakeEditor editor;
  editor.initialize(Json::object(), Json::object());
  editor.open("int a;");
  editor.complete(1, 0, 0);
  editor.last_submitted().done(test::silence("nothing"));
  CHECK(editor.answer(1).at("result").at("items").empty());
  CHECK(editor.sent("efim/receipt").empty());
}

TEST_CASE("many edits of a large text are made in parts, and all before the next message") {
  constexpr int kEdits = 200;
  OpenEditor editor(std::string(std::size_t{1} << 20, 'x'));
  Json changes = Json::array();
  for (int i = 0; i < kEdits; ++i)
    changes.push_back({{"range", test::range(0, 2 * i, 0, 2 * i)}, {"text", "y"}});
  editor.notify(
      "textDocument/didChange",
      {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 2}}}, {"contentChanges", changes}});
  CHECK(editor.parts > 2);
  editor.complete(1, 0, 0);
  const auto text = editor.last_submitted().request.snapshot->bytes();
  REQUIRE(text.size() == (std::size_t{1} << 20) + kEdits);
  for (std::size_t i = 0; i < kEdits; ++i) REQUIRE(text.substr(2 * i, 2) == "yx");
}

TEST_CASE("a letter in a text of 16 MiB is typed on another thread, and before the next message") {
  OpenEditor editor(std::string(std::size_t{16} << 20, 'x'));
  const Json message = {
      {"jsonrpc", "2.0"},
      {"method", "textDocument/didChange"},
      {"params",
       {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 2}}},
        {"contentChanges", {{{"range", test::range(0, 1, 0, 1)}, {"text", "y"}}}}}}};
  using Next = service::Session::Next;
  REQUIRE(editor.session->receive(message.dump()) == Next::kAside);
  std::thread(editor.session->work_aside()).join();
  REQUIRE(editor.session->go_on() == Next::kGoOn);
  editor.complete(1, 0, 0);
  CHECK(editor.last_submitted().request.snapshot->bytes().substr(0, 4) == "xyxx");
}

TEST_CASE("a session that ends in the middle of a change drops it") {
  OpenEditor editor(std::string(std::size_t{4} << 20, 'x'));
  Json changes = Json::array();
  for (int i = 0; i < 10; ++i)
    changes.push_back({{"range", test::range(0, 0, 0, 0)}, {"text", "y"}});
  const Json message = {{"jsonrpc", "2.0"},
                        {"method", "textDocument/didChange"},
                        {"params",
                         {{"textDocument", {{"uri", FakeEditor::kUri}, {"version", 2}}},
                          {"contentChanges", changes}}}};
  using Next = service::Session::Next;
  REQUIRE(editor.session->receive(message.dump()) == Next::kUnfinished);
  editor.session->end();
  CHECK(editor.session->go_on() == Next::kClose);
  CHECK(editor.host.texts.bytes() == 0);
}
