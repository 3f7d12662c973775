#include "daemon/completion/fit/stop_rules.h"

#include <catch2/catch.hpp>
#include <string>

using efimd::completion::StopPlace;
using efimd::completion::StopRule;
using efimd::completion::StopRules;

namespace {

struct Stopped {
  std::string kept;
  std::size_t fed = 0;  ///< bytes until the rule ended it; all of them when it did not
};

/// Feeds `generated` in steps of `step` bytes after `line_before`.
Stopped run(StopRule rule, const StopPlace& place, const std::string& generated,
            std::size_t step = 1) {
  StopRules rules(rule, place);
  std::size_t fed = 0;
  while (fed < generated.size()) {
    const std::string bytes = generated.substr(fed, step);
    fed += bytes.size();
    if (rules.feed(bytes)) break;
  }
  return {rules.finish(), fed};
}

/// What the block rule keeps must not depend on how the bytes arrive.
void check_block(const std::string& line_before, const std::string& generated,
                 const std::string& kept, const std::string& next_line = "") {
  INFO("after \"" << line_before << "\":\n" << generated);
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, generated.size()})
    CHECK(run(StopRule::kBlock, {line_before, next_line}, generated, step).kept == kept);
}

}  // namespace

TEST_CASE("without a rule everything is kept") {
  const std::string text = "a\n\n\n}\n  b\n";
  CHECK(run(StopRule::kNone, {"x", ""}, text).kept == text);
}

TEST_CASE("the line rule ends before the first line end, whichever it is") {
  CHECK(run(StopRule::kLine, {"int a = ", ""}, "1;\nint b;").kept == "1;");
  CHECK(run(StopRule::kLine, {"int a = ", ""}, "1;\nint b;").fed == 3);
  CHECK(run(StopRule::kLine, {"int a = ", ""}, "1;\r\nint b;").kept == "1;");
  CHECK(run(StopRule::kLine, {"int a = ", ""}, "1;\rint b;").kept == "1;");
  CHECK(run(StopRule::kLine, {"int a = ", ""}, "1;").kept == "1;");
}

TEST_CASE("the line rule keeps nothing of a completion that begins with a line end") {
  CHECK(run(StopRule::kLine, {"foo();", ""}, "\n  bar();").kept.empty());
  CHECK(run(StopRule::kLine, {"", ""}, "\n  bar();").kept.empty());
}

TEST_CASE("SR-3: a statement's completion ends with the statement") {
  check_block("int a = ", "1;\nint b = 2;\n", "1;");
  check_block("    return a", " + b\n    print(a)\n", " + b");
  check_block("x := ", "f(y)\ny := 2\n", "f(y)");
  check_block("  \"a\": ", "1,\n  \"b\": 2\n", "1,");
  CHECK(run(StopRule::kBlock, {"int a = ", ""}, "1;\nint b = 2;\n").fed == 3);
}

TEST_CASE("SR-1: a dedent ends it") {
  check_block("    ", "a = 1;\n    b = 2;\n}\nint main() {", "a = 1;\n    b = 2;");
  check_block("    ", "a = 1\n    b = 2\nprint(a)\n", "a = 1\n    b = 2");
  check_block("\t", "a := 1\n\tb := 2\n}\n", "a := 1\n\tb := 2");
  check_block("    return x", ";\n}\nint g() {\n", ";");
}

TEST_CASE("SR-2, SR-5: a block opened on the cursor's line runs to its closing bracket") {
  check_block("if (x) {", "\n    a();\n    b();\n}\nc();\n", "\n    a();\n    b();\n}");
  check_block("if (x) ", "{\n    a();\n} else {\n    b();\n}\nc();\n",
              "{\n    a();\n} else {\n    b();\n}");
  check_block("} else {", "\n    a();\n}\nc();\n", "\n    a();\n}");
  check_block("func f() error {", "\n\treturn nil\n}\n\nfunc g() {\n", "\n\treturn nil\n}");
  check_block("\tfor _, x := range xs {", "\n\t\ty += x\n\t}\n\treturn y\n", "\n\t\ty += x\n\t}");
  check_block("  \"a\": {", "\n    \"b\": [\n      1\n    ]\n  },\n  \"c\": 1\n",
              "\n    \"b\": [\n      1\n    ]\n  },");
  check_block("foo(function() {", "\n  a();\n});\nb();\n", "\n  a();\n});");
}

TEST_CASE("SR-2: lines at the base belong to it while a bracket is open") {
  check_block("switch x {", "\ncase 1:\n\ta()\ndefault:\n\tb()\n}\nc()\n",
              "\ncase 1:\n\ta()\ndefault:\n\tb()\n}");
  check_block("call(", "\n    a,\n    b\n)\nnext()\n", "\n    a,\n    b\n)");
}

TEST_CASE("SR-3: a brace on its own line and the words that go on with a block belong to it") {
  check_block("int f()", "\n{\n    return 1;\n}\nint g()\n", "\n{\n    return 1;\n}");
  check_block("if x:", "\n    a()\nelif y:\n    b()\nelse:\n    c()\nd()\n",
              "\n    a()\nelif y:\n    b()\nelse:\n    c()");
  check_block("try:", "\n    a()\nexcept E:\n    b()\n\nd()\n", "\n    a()\nexcept E:\n    b()");
  check_block("  if x then", "\n    a()\n  end\n  b()\n", "\n    a()\n  end");
  check_block("    def f(self):", "\n        return 1\n\n    def g(self):\n", "\n        return 1");
}

TEST_CASE("SR-4: siblings on a blank line belong together until a block ends") {
  check_block("    ", "int a = 1;\n    int b = 2;\n    if (a) {\n        f();\n    }\n    g();\n",
              "int a = 1;\n    int b = 2;\n    if (a) {\n        f();\n    }");
  check_block("    ", "for x in y:\n        f(x)\n    return y\n", "for x in y:\n        f(x)");
  check_block("", "    return 1\n    pass\ndef g():\n", "    return 1\n    pass");
  check_block("  ", "\"a\": 1,\n  \"b\": 2\n}\n", "\"a\": 1,\n  \"b\": 2");
}

TEST_CASE("SR-4: at the outermost level a blank line ends it") {
  check_block("", "import os\nimport sys\n\ndef f():\n    pass\n", "import os\nimport sys");
  check_block("", "def f():\n    a()\n\n    b()\n\nc()\n", "def f():\n    a()\n\n    b()");
  check_block("    ", "a();\n\n    b();\n}\n", "a();\n\n    b();");
}

TEST_CASE("SR-4: what a comment announces may begin below it") {
  check_block("# adds two numbers", "\ndef add(a, b):\n    return a + b\n\nprint(1)\n",
              "\ndef add(a, b):\n    return a + b");
  check_block("    // sum", "\n    int sum = a + b;\n    return sum;\n}\n",
              "\n    int sum = a + b;\n    return sum;");
}

TEST_CASE("a finished line proposes nothing below itself") {
  check_block("foo();", "\nbar();\n", "");
  check_block("    x = 1", "\n    y = 2\n", "");
}

TEST_CASE("SR-5: a bracket that was open before the cursor's line ends it when it closes") {
  check_block("    ", "b)\n    next()\n", "b)");
  check_block("", "}\nint g() {\n", "}");
}

TEST_CASE("SR-6: two blank lines end it") {
  check_block("    ", "a()\n\n\n    b()\n", "a()");
  CHECK(run(StopRule::kBlock, {"    ", ""}, "a()\n\n\n\n\n\n\n\n").fed == 6);
}

TEST_CASE("SR-6: a line that stands behind the cursor already ends it") {
  check_block("    ", "int b = 2;\n    return a + b;\n    more();\n",
              "int b = 2;\n    return a + b;", "    return a + b;");
  check_block("    ", "return a;\n    more();\n", "return a;", "    return a;");
  check_block("if (x) {", "\n    return 1;\n    more();\n}\n", "\n    return 1;\n    more();\n}",
              "return 1;");
}

TEST_CASE("brackets in strings do not count, lifetimes open none") {
  check_block("if (x) {", "\n    f(\"}\");\n    g('}');\n}\nh();\n",
              "\n    f(\"}\");\n    g('}');\n}");
  check_block("fn f<'a>(x: &'a str) {", "\n    g(x)\n}\nfn h() {\n", "\n    g(x)\n}");
}

TEST_CASE("line ends of every kind are seen, also when they arrive in halves") {
  check_block("int a = f(b) +", " 1\r\nint b;\r\n", " 1");
  check_block("if (x) {", "\r\n    a();\r\n}\r\nb();\r\n", "\r\n    a();\r\n}");
  check_block("if (x) {", "\r    a();\r}\rb();\r", "\r    a();\r}");
}

TEST_CASE("what a budget cut short is kept as far as it goes, but not its blanks") {
  check_block("if (x) {", "\n    a();\n    b(", "\n    a();\n    b(");
  check_block("if (x) {", "\n    a();\n    ", "\n    a();");
  check_block("if (x) {", "\n    a();\n}", "\n    a();\n}");
  check_block("if x:", "\n    a()\nel", "\n    a()");
}

TEST_CASE("SR-7: a line that repeats the one in front of it ends it") {
  check_block("    ", "assert(a);\n    assert(a);\n    assert(a);\n", "assert(a);");
  check_block("    ", "a = 1\n    b = 2\n\n    b = 2\n", "a = 1\n    b = 2");
  check_block("if (x) {", "\n  if (y) {\n    z();\n  }\n}", "\n  if (y) {\n    z();\n  }\n}");
}

TEST_CASE("SR-5: the pattern of a shell's case closes no bracket") {
  const StopPlace place{.line_before = "case $1 in",
                        .next_line = "",
                        .language = efimd::completion::language_of("shellscript")};
  const std::string block = "\n  start)\n    begin\n    ;;\n  stop) end ;;\nesac";
  CHECK(run(StopRule::kBlock, place, block + "\nnext\n").kept == block);
}
