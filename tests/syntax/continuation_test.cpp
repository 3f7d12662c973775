#include "daemon/syntax/continuation.h"

#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/marked.h"

using namespace efimd;
using namespace efimd::syntax;

namespace {

/// A process's first parse reads the grammar's tables from its file, and sanitizers slow all.
constexpr std::uint64_t kAnyTimeUs = 10'000'000;

/// What is accepted of the source after its cursor; "?" if nothing is known.
std::string accepted(Grammar grammar, const std::string& source) {
  const test::Marked place = test::marked(source);
  const std::string window = place.text.substr(0, place.cursor);
  const std::string text = place.text.substr(place.cursor);
  const auto bytes = accepted_bytes(grammar, window, text, kAnyTimeUs);
  return bytes ? text.substr(0, *bytes) : "?";
}

/// The line on which the statement begins whose block the source opens; "?" if nothing is known.
std::string owner(Grammar grammar, const std::string& source, const std::string& closers) {
  const auto begin = block_begin(grammar, source, closers, kAnyTimeUs);
  if (!begin) return "?";
  return source.substr(*begin, source.find('\n', *begin) - *begin);
}

constexpr auto kLanguages =
    std::to_array<Grammar>({Grammar::kC, Grammar::kCpp, Grammar::kPython, Grammar::kGo,
                            Grammar::kRust, Grammar::kTypescript, Grammar::kTsx, Grammar::kJava});

}  // namespace

TEST_CASE("a text is accepted up to the first token that does not belong there") {
  CHECK(accepted(Grammar::kCpp, "int f() {\n  return ^a + b;\n}") == "a + b;\n}");
  CHECK(accepted(Grammar::kCpp, "int f() {\n  return ^a b c;") == "a ");
  CHECK(accepted(Grammar::kC, "int f(void) {\n  x = ^g(a b);") == "g(a ");
  CHECK(accepted(Grammar::kPython, "def f(a):\n    x = ^a b") == "a ");
  CHECK(accepted(Grammar::kGo, "package p\nfunc f() {\n\tx := ^1 2\n}\n") == "1 ");
  CHECK(accepted(Grammar::kRust, "fn f() {\n    let x = ^;\n}\n").empty());
  CHECK(accepted(Grammar::kTypescript, "const x = ^f(1 2);") == "f(1 ");
  CHECK(accepted(Grammar::kTsx, "const x = ^<p>a</p>;") == "<p>a</p>;");
  CHECK(accepted(Grammar::kJava, "class A {\n  int f() {\n    return ^a b;") == "a ");
}

TEST_CASE("what a text leaves open is accepted") {
  CHECK(accepted(Grammar::kCpp, "int f() {\n  ^if (a) {") == "if (a) {");
  CHECK(accepted(Grammar::kCpp, "int f() {\n  ^g(a, ") == "g(a, ");
  CHECK(accepted(Grammar::kPython, "def f(a):\n    ^if a:") == "if a:");
  CHECK(accepted(Grammar::kPython, "def f(a):\n    x = ^[1,\n") == "[1,\n");
  CHECK(accepted(Grammar::kRust, "fn f() {\n    ^match a {\n        1 =>") ==
        "match a {\n        1 =>");
}

TEST_CASE("nothing is known behind an error") {
  CHECK(accepted(Grammar::kCpp, "int f() {\n  a b c d e;\n  return ^a;") == "?");
  CHECK(accepted(Grammar::kPython, "x = = 1\ny = ^2\n") == "?");
}

TEST_CASE("an error far above says nothing of the text") {
  std::string above = "int a = = b c d;\n";
  while (above.size() < 2 * kSoundBytes) above += "int value = 1;\n";
  CHECK(accepted(Grammar::kCpp, above + "int b = ^1 2;") == "1 ");
}

TEST_CASE("nothing is known without a grammar, and once the time is over") {
  CHECK(accepted(Grammar::kNone, "int f() {\n  return ^a b c;") == "?");
  CHECK_FALSE(accepted_bytes(Grammar::kCpp, "int a = ", "b c;", 0));
  CHECK_FALSE(block_begin(Grammar::kNone, "int f() {", "}"));
  CHECK_FALSE(block_begin(Grammar::kCpp, "int f() {", "}", 0));
}

TEST_CASE("of a large file a window is read, which begins with a declaration") {
  std::string text = "void f() {\n";
  while (text.size() < std::size_t{5} << 20) text += "  g(1);\n}\n\nvoid f() {\n";
  const std::string_view window = window_before(text);
  CHECK(window.size() <= kWindowBytesMax);
  CHECK(window.size() >= kWindowBytesMax / 2);
  CHECK(window.starts_with("void f() {\n"));
  CHECK(accepted_bytes(Grammar::kCpp, window, "  h(1 2);", kAnyTimeUs) == 6U);
  CHECK_FALSE(accepted_bytes(Grammar::kCpp, text, "  h(1 2);"));
  CHECK(window_before(std::string(std::size_t{5} << 20, 'a')).empty());
}

TEST_CASE("deep nesting and bytes that are no text are read to the end, or given up") {
  for (const Grammar grammar : kLanguages) {
    for (const std::string& piece : std::vector<std::string>{
             "(", "[", "{", "f(", "if (a) {\n", "\xff", "\xf0\x9f", "\"\n", std::string(1, '\0')}) {
      std::string deep;
      while (deep.size() < 100'000) deep += piece;
      CHECK_FALSE(accepted_bytes(grammar, "", deep));
      CHECK_FALSE(block_begin(grammar, deep, ""));
      const std::string window = deep.substr(0, kWindowBytesMax);
      const auto bytes = accepted_bytes(grammar, window, window);
      CHECK((!bytes || *bytes <= window.size()));
      const auto begin = block_begin(grammar, window, window);
      CHECK((!begin || *begin < window.size()));
    }
  }
}

TEST_CASE("a block's statement may begin on an earlier line") {
  CHECK(owner(Grammar::kCpp, "namespace a {\nint f(int a,\n      int b) {", "}}") ==
        "int f(int a,");
  CHECK(owner(Grammar::kCpp, "A::A(int a)\n    : a_(a) {", "}") == "A::A(int a)");
  CHECK(owner(Grammar::kC, "void f(void) {\n  if (a &&\n      b) {", "}}") == "if (a &&");
  CHECK(owner(Grammar::kPython, "def f(a,\n      b):", "") == "def f(a,");
  CHECK(owner(Grammar::kPython, "if (a and\n        b):", "") == "if (a and");
  CHECK(owner(Grammar::kGo, "package p\nfunc f(a int,\n\tb int) {", "}") == "func f(a int,");
  CHECK(owner(Grammar::kRust, "fn f<T>(a: T)\nwhere\n    T: Copy {", "}") == "fn f<T>(a: T)");
  CHECK(owner(Grammar::kTypescript, "function f(\n    a: number) {", "}") == "function f(");
  CHECK(owner(Grammar::kJava, "class A {\n  void f(int a,\n      int b) {", "}}") ==
        "void f(int a,");
}

TEST_CASE("what is no statement's block has no statement") {
  CHECK(owner(Grammar::kCpp, "int a[] = {", "}") == "?");
  CHECK(owner(Grammar::kPython, "a = {1:", "}") == "?");
  CHECK(owner(Grammar::kCpp, "int f(a b c d {", "}") == "?");
}

TEST_CASE("where the time runs out, good text is never called wrong") {
  std::string text;
  while (text.size() < kWindowBytesMax) text += "void f() {\n  g(1, h(2), i[3]);\n}\n\n";
  for (const std::uint64_t us : {1, 20, 50, 100, 150, 200, 300, 500, 1000, 2000, 5000, 20000}) {
    const auto bytes = accepted_bytes(Grammar::kCpp, "int a;\n", text, us);
    CAPTURE(us);
    CHECK((!bytes || *bytes == text.size()));
  }
}
