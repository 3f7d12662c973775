#include "daemon/server/text_budget.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/server/fake_editor.h"

using namespace efimd;
using namespace efimd::service;

TEST_CASE("text of one session leaves room for others") {
  TextBudget budget;
  HeldText one(budget, 1), more(budget, 1), other(budget, 2);
  CHECK(one.hold(TextBudget::kSessionBytesMax));
  CHECK_FALSE(more.hold(1));
  CHECK(other.hold(TextBudget::kSessionBytesMax));
  HeldText third(budget, 3);
  CHECK_FALSE(third.hold(1));
  CHECK(one.hold(10));
  CHECK(third.hold(1));
}

TEST_CASE("the room of a text is given back with it") {
  TextBudget budget;
  {
    HeldText held(budget, 1);
    REQUIRE(held.hold(100));
    HeldText moved = std::move(held);
    CHECK(budget.bytes() == 100);
    moved = HeldText(budget, 1);
    CHECK(budget.bytes() == 0);
  }
  CHECK(budget.bytes() == 0);
}

TEST_CASE("a document for which there is no room is not completed, and others are") {
  test::FakeEditor editor;
  editor.initialize();
  editor.open("int a;\n", "file:///src/before.cpp");
  HeldText most(editor.host.texts, 101);
  HeldText rest(editor.host.texts, 102);
  REQUIRE(most.hold(TextBudget::kSessionBytesMax));
  REQUIRE(rest.hold(TextBudget::kSessionBytesMax - 20));
  editor.open("int too_long_for_what_is_left;\n");
  editor.complete(1, 0, 0);
  CHECK(editor.answer(1).at("result").at("items").empty());
  CHECK(editor.sent("efim/receipt").at(0).at("reason").get<std::string>().find("too much text") !=
        std::string::npos);
  editor.complete(2, 0, 0, "file:///src/before.cpp");
  CHECK(editor.host.submitted.size() == 1);
}

TEST_CASE("the text of a closed document, and of a session that ends, is given back") {
  test::FakeEditor editor;
  editor.initialize();
  editor.open("int a;\n");
  editor.open("int b;\n", "file:///src/b.cpp");
  CHECK(editor.host.texts.bytes() == 14);
  editor.notify("textDocument/didClose", {{"textDocument", {{"uri", test::FakeEditor::kUri}}}});
  CHECK(editor.host.texts.bytes() == 7);
  editor.session->end();
  CHECK(editor.host.texts.bytes() == 0);
}
