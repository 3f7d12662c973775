#include "daemon/text/indentation.h"

#include <catch2/catch.hpp>

using namespace efimd::text;

namespace {

void check(const std::string& text, bool tabs, int spaces) {
  INFO(text);
  const Indentation found = indentation_of(text, text.size() / 2);
  CHECK(found.known);
  CHECK(found.tabs == tabs);
  if (!tabs) CHECK(found.spaces == spaces);
}

}  // namespace

TEST_CASE("the step of the indentation is found, not its depth") {
  check("class A {\n    void f() {\n        g();\n    }\n};\n", false, 4);
  check("a:\n  b:\n    c\n    d\n  e\n", false, 2);
  check("if x then\n   y()\n   z()\nend\n", false, 3);
}

TEST_CASE("a file that is indented by one space is") { check("(a\n (b\n  (c)))\n", false, 1); }

TEST_CASE("aligned arguments and comments by one column do not make one space the step") {
  check("/*\n * a\n * b\n */\nint f() {\n  g(a,\n    b);\n  h();\n}\n/*\n * c\n */\n", false, 2);
}

TEST_CASE("tabs are found, and spaces that align behind them do not count") {
  check("void f() {\n\tg();\n\tif (x)\n\t\th();\n}\n", true, 0);
  check("a\n\tb\n\tc\n  d\n", true, 0);
}

TEST_CASE("comments of several lines do not make one space the step of a text with tabs") {
  check("/**\n * a\n * b\n * c\n */\nf() {\n\tg();\n\th();\n}\n", true, 0);
}

TEST_CASE("a text with many lines of either kind is mixed") {
  CHECK(indentation_of("f {\n    a {\n\tb\n    }\n}\n", 0).mixed);
  CHECK_FALSE(indentation_of("f {\n\ta\n\tb\n\tc\n\td\n  e\n}\n", 0).mixed);
  CHECK_FALSE(indentation_of("", 0).mixed);
}

TEST_CASE("blank lines say nothing, and a text without indentation is unknown") {
  CHECK_FALSE(indentation_of("", 0).known);
  CHECK_FALSE(indentation_of("a\nb\n   \n\t\n", 2).known);
  check("a\n        \n    b\n", false, 4);
}

TEST_CASE("the place's own habit wins over that of the file's other end") {
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "\ta;\n";
  const std::size_t border = text.size();
  for (int i = 0; i < 3000; ++i) text += "a\n  b\n";
  CHECK(indentation_of(text, 0).tabs);
  CHECK_FALSE(indentation_of(text, text.size()).tabs);
  CHECK(indentation_of(text, border - 2000).tabs);
}

TEST_CASE("a unit is what one level is written as") {
  CHECK(Indentation{true, 4, true}.unit() == "\t");
  CHECK(Indentation{false, 3, true}.unit() == "   ");
}

TEST_CASE("a line of megabytes is looked at in part only") {
  const std::string minified(8U << 20U, ' ');
  CHECK_FALSE(indentation_of(minified + "x", minified.size() / 2).known);
}

TEST_CASE("leading blanks are spaces and tabs") {
  CHECK(leading_blanks(" \t x ") == " \t ");
  CHECK(leading_blanks("   ") == "   ");
  CHECK(leading_blanks("x").empty());
}
