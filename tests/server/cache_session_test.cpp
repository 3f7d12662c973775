// What a session says of documents that must not be stored, and efim/cache.
#include <catch2/catch.hpp>

#include "tests/server/fake_editor.h"

using namespace efimd;
using test::FakeEditor;
using test::Json;

TEST_CASE("an opened document is told to the completion service, with whether it may be stored") {
  FakeEditor editor;
  editor.initialize();
  editor.open("int a;", "file:///p/a.c");
  editor.open("int b;", "file:///p/private/b.c");
  editor.open("int c;", "untitled:Untitled-1");
  REQUIRE(editor.host.opened.size() == 3);
  CHECK(editor.host.opened[0].may_be_stored);
  CHECK_FALSE(editor.host.opened[1].may_be_stored);
  CHECK_FALSE(editor.host.opened[2].may_be_stored);
  CHECK(editor.host.opened[0].snapshot->bytes() == "int a;");
}

TEST_CASE("a request says whether its document may be stored, as does its opening") {
  for (const auto& [uri, stored] :
       {std::pair("file:///p/a.c", true), std::pair("file:///p/private/a.c", false)}) {
    FakeEditor editor;
    editor.initialize();
    editor.open("int a;", uri);
    editor.request(7, "textDocument/inlineCompletion",
                   {{"textDocument", {{"uri", uri}}},
                    {"position", {{"line", 0}, {"character", 3}}},
                    {"context", {{"triggerKind", 1}}}});
    REQUIRE(editor.host.submitted.size() == 1);
    CHECK(editor.host.submitted[0].request.may_be_stored == stored);
  }
}

TEST_CASE("a file that may hold secrets is answered empty with the reason, and goes nowhere") {
  FakeEditor editor;
  editor.initialize();
  const std::string uri = "file:///p/.env";
  editor.open("KEY=", uri);
  editor.request(7, "textDocument/inlineCompletion",
                 {{"textDocument", {{"uri", uri}}},
                  {"position", {{"line", 0}, {"character", 4}}},
                  {"context", {{"triggerKind", 1}}}});
  CHECK(editor.answer(7).at("result").at("items").empty());
  CHECK(editor.host.submitted.empty());
  CHECK(editor.host.opened.empty());
  CHECK(editor.host.silences == std::vector<std::string>{"the file may hold secrets"});

  FakeEditor willing;
  willing.host.settings.secret_files = true;
  willing.initialize();
  willing.open("KEY=", uri);
  REQUIRE(willing.host.opened.size() == 1);
  CHECK_FALSE(willing.host.opened[0].may_be_stored);
}

TEST_CASE("efim/cache passes on what is asked, and refuses what makes no sense") {
  FakeEditor editor;
  editor.request(1, "efim/cache", {{"action", "purge"}, {"uri", "file:///p/a.c"}});
  CHECK(editor.answer(1).at("result").at("documents") == 0);
  REQUIRE(editor.host.cache_requests.size() == 1);
  CHECK(editor.host.cache_requests[0].action == service::CacheRequest::Action::kPurge);
  CHECK(editor.host.cache_requests[0].uri == "file:///p/a.c");
  int id = 1;
  for (const Json& params :
       {Json(nullptr), Json::object(), Json{{"action", "burn"}}, Json{{"action", "purge"}},
        Json{{"action", "purge"}, {"uri", "file:///a"}, {"all", true}}, Json{{"action", "pin"}}}) {
    INFO(params.dump());
    editor.request(++id, "efim/cache", params);
    CHECK(editor.answer(id).contains("error"));
  }
  CHECK(editor.host.cache_requests.size() == 1);
}
