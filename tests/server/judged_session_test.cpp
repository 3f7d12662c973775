// A document's file is judged on another thread: what a session does until then, and after.
#include <catch2/catch.hpp>

#include "daemon/files/exclusions.h"
#include "tests/server/fake_editor.h"

using namespace efimd;
using test::FakeEditor;
using test::Json;
using Reason = service::Exclusions::Reason;

namespace {

service::FileFacts facts(Reason reason, const std::string& pattern = "") {
  return {{reason, pattern}, {"project", "src/a.cpp"}, {"/project", "/project/src/a.cpp"}};
}

/// An editor whose files are judged when the test says so.
struct Waiting : FakeEditor {
  Waiting() {
    host.judges_at_once = false;
    initialize();
    open("int a = \n");
  }
  void judge(const service::FileFacts& facts, std::size_t which = 0) {
    host.waiting_judgements.at(which)(facts);
  }
};

}  // namespace

TEST_CASE("a request waits for what its file is") {
  Waiting editor;
  editor.complete(1, 0, 8);
  CHECK(editor.answers(1).empty());
  CHECK(editor.host.submitted.empty());
  editor.judge(facts(Reason::kNone));
  REQUIRE(editor.host.submitted.size() == 1);
  CHECK(editor.last_submitted().request.may_be_stored);
  CHECK(editor.last_submitted().request.file.path == "src/a.cpp");
  CHECK(editor.last_submitted().request.home.project == "/project");
  editor.last_submitted().done(test::suggestion("42", 8, 8));
  CHECK(editor.answer(1).at("result").at("items").size() == 1);
}

TEST_CASE("a request that waits keeps the settings that held when it came") {
  Waiting editor;
  const auto set = [&](int tokens) {
    editor.notify("workspace/didChangeConfiguration",
                  {{"settings", {{"efim", {{"maxTokens", tokens}}}}}});
  };
  set(5);
  editor.complete(1, 0, 8);
  set(100);  // for another document, as efimd-http does
  editor.judge(facts(Reason::kNone));
  CHECK(editor.last_submitted().request.options.tokens_max == 5);
  editor.complete(2, 0, 8);
  CHECK(editor.last_submitted().request.options.tokens_max == 100);
}

TEST_CASE("a request that waits gives way to a newer one, and to the editor's cancelling") {
  Waiting editor;
  editor.complete(1, 0, 8);
  editor.complete(2, 0, 7);
  CHECK(editor.answer(1).at("result").is_null());
  editor.notify("$/cancelRequest", {{"id", 2}});
  CHECK(editor.answer(2).contains("error"));
  editor.judge(facts(Reason::kNone));
  CHECK(editor.host.submitted.empty());
}

TEST_CASE(
    "a file whose file system does not answer is completed, not stored, and its receipt says so") {
  Waiting editor;
  editor.complete(1, 0, 8);
  editor.judge(service::facts_without_asking(FakeEditor::kUri));
  REQUIRE(editor.host.submitted.size() == 1);
  CHECK_FALSE(editor.last_submitted().request.may_be_stored);
  CHECK(editor.last_submitted().request.home.project.empty());
  CHECK(editor.last_submitted().request.file.path == "a.cpp");
  editor.last_submitted().done(test::suggestion("42", 8, 8));
  const Json receipt = editor.sent("efim/receipt").at(0);
  CHECK(receipt.at("notStored").get<std::string>().find("does not answer") != std::string::npos);

  SECTION("until it does") {
    editor.judge(facts(Reason::kNone));
    editor.complete(2, 0, 8);
    CHECK(editor.last_submitted().request.may_be_stored);
    CHECK(editor.last_submitted().request.home.project == "/project");
    CHECK(editor.last_submitted().request.file.path == "a.cpp");  // its prompt's head stays
    CHECK(editor.host.opened.size() == 1);
  }
  SECTION("and is a secret after all") {
    editor.judge(facts(Reason::kSecret, ".env*"));
    CHECK(editor.host.closed.size() == 1);
    editor.complete(2, 0, 8);
    CHECK(editor.host.submitted.size() == 1);
    CHECK(editor.answer(2).at("result").at("items").empty());
  }
}

TEST_CASE("a request that waits is answered with nothing if its file is a secret") {
  Waiting editor;
  editor.complete(1, 0, 8);
  editor.judge(facts(Reason::kSecret, ".env*"));
  CHECK(editor.answer(1).at("result").at("items").empty());
  CHECK(editor.host.opened.empty());
  const Json receipt = editor.sent("efim/receipt").at(0);
  CHECK(receipt.at("reason").get<std::string>().find(".env*") != std::string::npos);
}

TEST_CASE("a name that says secret needs no file system") {
  CHECK(service::facts_without_asking("file:///stalled/.env").exclusion.reason == Reason::kSecret);
  CHECK(service::facts_without_asking("file:///stalled/a.c").exclusion.reason == Reason::kUnknown);
}

TEST_CASE("what is said of an older opening does not count for a newer one") {
  Waiting editor;
  editor.open("int b = \n");
  editor.judge(facts(Reason::kNone), 0);
  CHECK(editor.host.opened.empty());
  editor.judge(facts(Reason::kExclude, "*.cpp"), 1);
  REQUIRE(editor.host.opened.size() == 1);
  CHECK_FALSE(editor.host.opened[0].may_be_stored);
}

TEST_CASE("a request that waits is answered if its document is opened anew") {
  Waiting editor;
  editor.complete(1, 0, 8);
  editor.open("int b = \n");
  CHECK(editor.answer(1).at("result").is_null());
  editor.judge(facts(Reason::kNone), 1);
  CHECK(editor.host.submitted.empty());
  editor.complete(2, 0, 8);
  CHECK(editor.host.submitted.size() == 1);
}

TEST_CASE("a document that was closed before its file was known stays closed") {
  Waiting editor;
  editor.complete(1, 0, 8);
  editor.notify("textDocument/didClose", {{"textDocument", {{"uri", FakeEditor::kUri}}}});
  CHECK(editor.answer(1).at("result").is_null());
  editor.judge(facts(Reason::kNone));
  CHECK(editor.host.opened.empty());
}

TEST_CASE("a path that no file can have is not looked for") {
  std::string uri = "file:///";
  for (int i = 0; i < 16'000; ++i) uri += "a/";
  const service::FileFacts found = service::facts_of(service::Exclusions({}, true), uri + "b.c");
  CHECK(found.exclusion.reason == Reason::kUnknown);
}
