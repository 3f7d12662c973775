#include "daemon/completion/documents/event.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "tests/support/marked.h"

using namespace efimd;
using completion::classify;
using completion::Event;
using completion::LastRequest;

namespace {

/// The event name after `edit` of a document whose last request was at the cursor of `source`, and
/// whose cursor is where `now` has it. `now` is the whole text after the edit.
std::string event_after(const std::string& source, const std::function<void(text::Document&)>& edit,
                        const std::string& now, const std::string& shown = "") {
  const test::Marked place = test::marked(source);
  text::Document document(place.text);
  LastRequest last{document.snapshot()->serial(), place.cursor, {}};
  if (!shown.empty()) last.shown = {shown, place.cursor};
  edit(document);
  const test::Marked after = test::marked(now);
  REQUIRE(document.snapshot()->bytes() == after.text);
  return std::string(event_name(classify(&last, true, *document.snapshot(), after.cursor)));
}

auto replace(std::size_t begin, std::size_t end, const std::string& text) {
  return [=](text::Document& document) { REQUIRE(document.replace(begin, end, text)); };
}

}  // namespace

TEST_CASE("typing: a few characters at the cursor, with what closes them") {
  CHECK(event_after("ab^", replace(2, 2, "c"), "abc^") == "type");
  CHECK(event_after("ab^", replace(2, 2, "("), "ab(^") == "type");
  CHECK(event_after("ab^", replace(2, 2, "()"), "ab(^)") == "type");
  CHECK(event_after("fo^", replace(0, 2, "forEach"), "forEach^") == "type");
}

TEST_CASE("several edits since count by their sum") {
  const auto type_ab = [](text::Document& document) {
    REQUIRE(document.replace(1, 1, "a"));
    REQUIRE(document.replace(2, 2, "b"));
  };
  CHECK(event_after("x^", type_ab, "xab^") == "type");
  const auto type_and_delete = [](text::Document& document) {
    REQUIRE(document.replace(1, 1, "a"));
    REQUIRE(document.replace(1, 2, ""));
  };
  CHECK(event_after("x^", type_and_delete, "x^") == "repeat");
  const auto typo = [](text::Document& document) {
    REQUIRE(document.replace(2, 3, ""));
    REQUIRE(document.replace(2, 2, "d"));
  };
  CHECK(event_after("abc^", typo, "abd^") == "type");
  const auto apart = [](text::Document& document) {
    REQUIRE(document.replace(0, 0, "#"));
    REQUIRE(document.replace(9, 9, "x"));
  };
  CHECK(event_after("abcd\nef\ng^", apart, "#abcd\nef\nxg^") == "edit");
}

TEST_CASE("Enter: a line break and blanks, also between auto-closed brackets") {
  CHECK(event_after("  ab^", replace(4, 4, "\n  "), "  ab\n  ^") == "newline");
  CHECK(event_after("  ab^", replace(4, 4, "\r\n  "), "  ab\n  ^") == "newline");
  CHECK(event_after("{^}", replace(1, 1, "\n  \n"), "{\n  ^\n}") == "newline");
  CHECK(event_after("{^}", replace(1, 1, "\n  "), "{\n  ^}", "\n  x") == "newline");
}

TEST_CASE("accepting: more than a character that agrees with what was shown") {
  CHECK(event_after("a = ^", replace(4, 4, "foo(b);"), "a = foo(b);^", "foo(b);") == "accept");
  CHECK(event_after("a = ^", replace(4, 4, "foo"), "a = foo^", "foo(b);") == "accept");
  CHECK(event_after("a = ^", replace(4, 4, "foo(b);\n"), "a = foo(b);\n^", "foo(b);") == "accept");
  CHECK(event_after("f(^)", replace(2, 3, "x, y)"), "f(x, y)^", "x, y)") == "accept");
  CHECK(event_after("f(^)", replace(2, 3, "x)"), "f(x)^", "x)") == "accept");
  CHECK(event_after("f(^)", replace(2, 3, ");"), "f();^", ");") == "accept");
  CHECK(event_after("f(^)", replace(2, 3, "x)"), "f(x)^", "y)") == "edit");
  CHECK(event_after("a {^", replace(3, 3, "\r\n  b\r\n}"), "a {\n  b\n}^", "\n  b\n}") == "accept");
}

TEST_CASE("typing what is shown, character by character, is typing") {
  CHECK(event_after("a = ^", replace(4, 4, "f"), "a = f^", "foo(b);") == "type");
}

TEST_CASE("what was shown further left still counts while the text since agrees") {
  text::Document document("a = ");
  LastRequest last{document.snapshot()->serial(), 4, completion::Shown{"foo(b);", 4}};
  REQUIRE(document.replace(4, 4, "f"));
  forget_moved(last, *document.snapshot());
  REQUIRE(last.shown);
  last.serial = document.snapshot()->serial();
  last.cursor = 5;
  REQUIRE(document.replace(5, 5, "oo(b);"));
  CHECK(classify(&last, true, *document.snapshot(), 11) == Event::kAccept);
}

TEST_CASE("what was shown is forgotten when text in front of it moves") {
  text::Document document("a = ");
  LastRequest last{document.snapshot()->serial(), 4, completion::Shown{"foo(b);", 4}};
  REQUIRE(document.replace(0, 0, "x"));
  forget_moved(last, *document.snapshot());
  CHECK_FALSE(last.shown);
}

TEST_CASE("pasting is an edit") {
  CHECK(event_after("^", replace(0, 0, "int a;\nint b;\n"), "int a;\nint b;\n^") == "edit");
  const std::string pasted(completion::kTypedBytesMax + 1, 'x');
  CHECK(event_after("^", replace(0, 0, pasted), pasted + "^") == "edit");
}

TEST_CASE("deleting: backspace, delete, a selection, both of a pair") {
  CHECK(event_after("abc^", replace(2, 3, ""), "ab^") == "delete");
  CHECK(event_after("^abc", replace(0, 1, ""), "^bc") == "delete");
  CHECK(event_after("f(^)", replace(1, 3, ""), "f^") == "delete");
}

TEST_CASE("edits away from the cursor are edits") {
  CHECK(event_after("one\ntwo^", replace(0, 1, "O"), "One\ntwo^") == "edit");
  CHECK(event_after("one\ntwo^", replace(0, 1, ""), "ne\ntwo^") == "edit");
}

TEST_CASE("without edits it is a repetition or a jump") {
  const auto nothing = [](text::Document&) {};
  CHECK(event_after("a^b", nothing, "a^b") == "repeat");
  CHECK(event_after("a^b", nothing, "ab^") == "jump");
}

TEST_CASE("the first request opens, and one from another document switches") {
  text::Document document("ab");
  CHECK(classify(nullptr, true, *document.snapshot(), 1) == Event::kOpen);
  const LastRequest last{document.snapshot()->serial(), 1, {}};
  REQUIRE(document.replace(1, 1, "x"));
  CHECK(classify(&last, false, *document.snapshot(), 2) == Event::kSwitch);
}

TEST_CASE("more edits than a snapshot remembers are an edit") {
  text::Document document("");
  const LastRequest last{document.snapshot()->serial(), 0, {}};
  for (std::size_t i = 0; i <= text::kRecentEditsMax; ++i) REQUIRE(document.replace(i, i, "x"));
  CHECK(classify(&last, true, *document.snapshot(), 1) == Event::kEdit);
}
