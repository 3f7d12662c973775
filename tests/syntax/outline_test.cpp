#include "daemon/syntax/outline.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <ctime>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/syntax/imports.h"

using namespace efimd::syntax;

namespace {

constexpr Grammar kAll[] = {Grammar::kC,    Grammar::kCpp,        Grammar::kPython, Grammar::kGo,
                            Grammar::kRust, Grammar::kTypescript, Grammar::kTsx,    Grammar::kJava};

std::string outline(Grammar grammar, std::string_view text) {
  std::string all;
  for (const Declaration& declaration : outline_of(grammar, text)) all += declaration.text + "\n";
  return all;
}

/// Processor seconds for what a file shows of itself.
double outline_s(Grammar grammar, const std::string& text) {
  const std::clock_t begin = std::clock();
  std::size_t bytes = 0;
  for (const Declaration& declaration : outline_of(grammar, text)) bytes += declaration.text.size();
  CHECK(bytes <= kOutlineBytesMax + kDeclarationBytesMax);
  CHECK(imports_of(grammar, text).size() <= kImportsMax);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

/// Processor seconds of the slowest grammar. One that takes too long is tried again, because other
/// programs on the same core slow it down.
double slowest_s(const std::string& text, double enough_s) {
  constexpr int kTries = 3;
  double slowest = 0;
  for (const Grammar grammar : kAll) {
    double least = outline_s(grammar, text);
    for (int again = 1; again < kTries && least >= enough_s; ++again)
      least = std::min(least, outline_s(grammar, text));
    slowest = std::max(slowest, least);
  }
  return slowest;
}

std::string repeated(std::string_view text, std::size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

}  // namespace

TEST_CASE("C++ is outlined without bodies, comments and long values") {
  CHECK(outline(Grammar::kCpp,
                "#include <a>\nnamespace n {\nnamespace { int hidden; }\n"
                "template <class T> class V : public W<T> {\n public:\n  V() : a_(1) {}\n"
                "  int size() const { return a_; }  // its size\n\n private:\n  int a_ = 0;\n};\n"
                "struct P { int x; };\nint f(int a,\n      int b);\ninline int g() { return 1; }\n"
                "constexpr int kTable[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, "
                "17, 18, 19, 20};\n}\n") ==
        "template <class T> class V : public W<T> {\n public:\n  V();\n  int size() const;\n "
        "private:\n"
        "  int a_ = 0;\n};\nstruct P { int x; };\nint f(int a,\n      int b);\ninline int g();\n"
        "constexpr int kTable[];\n");
}

TEST_CASE("C is outlined with its types and macros") {
  CHECK(outline(Grammar::kC,
                "#define N 10\ntypedef struct { int q; } Q;\nextern const char *names[];\nstatic "
                "int f(void) { return 1; }\n") ==
        "#define N 10\ntypedef struct { int q; } Q;\nextern const char *names[];\nstatic int "
        "f(void);\n");
}

TEST_CASE("Python is outlined without documentation and without what runs as a program") {
  CHECK(outline(Grammar::kPython,
                "LIMIT = 5\nclass Shape(Base):\n    \"\"\"Doc.\"\"\"\n    sides: int = 3\n"
                "    def __init__(self, a, b=1):\n        \"\"\"doc\"\"\"\n        self.a = a\n"
                "    @property\n    def area(self) -> float:\n        return 1\n"
                "async def go(a, *, b: int = 2) -> None:\n    await x()\n"
                "if __name__ == \"__main__\":\n    hidden = 1\n") ==
        "LIMIT = 5\nclass Shape(Base):\n    sides: int = 3\n    def __init__(self, a, b=1): ...\n"
        "    @property\n    def area(self) -> float: ...\nasync def go(a, *, b: int = 2) -> None: "
        "...\n");
}

TEST_CASE("Go, Rust, TypeScript and Java are outlined") {
  CHECK(outline(Grammar::kGo,
                "package p\n// C\ntype T struct {\n\tA int // a\n}\nfunc (t *T) M(x string) { t.A "
                "= 1 }\n") == "type T struct {\n\tA int\n}\nfunc (t *T) M(x string)\n");
  CHECK(outline(Grammar::kRust,
                "/// d\npub struct S { pub a: u32 }\nimpl S { pub fn new() -> Self { S {} } }\n"
                "#[cfg(test)]\nmod tests { fn t() {} }\nmod inner { pub fn deep() {} }\n") ==
        "pub struct S { pub a: u32 }\nimpl S { pub fn new() -> Self; }\npub fn deep();\n");
  CHECK(outline(Grammar::kTypescript,
                "export interface O { a: string }\nexport const arrow = (a: number): number => { "
                "return a; };\n"
                "export class K { get v(): number { return 1 } }\nexport function f(a: number): "
                "string { return \"\"; }\n") ==
        "interface O { a: string }\nconst arrow = (a: number): number => ...;\nclass K { get v(): "
        "number; }\n"
        "function f(a: number): string;\n");
  CHECK(outline(Grammar::kJava,
                "package a;\npublic class A {\n  /** d */\n  public <R> R m(int a) throws E { "
                "return null; }\n}\n") ==
        "public class A {\n  public <R> R m(int a) throws E;\n}\n");
}

TEST_CASE("a class is outlined as one if a macro stands before its name") {
  const auto text = [](std::string_view given) { return outline(Grammar::kCpp, given); };
  CHECK(text("class SHOP_API Store : public Base {\n public:\n  int add() { return 1; }\n};\n") ==
        "class Store : public Base {\n public:\n  int add();\n};\n");
  CHECK(text("struct PACKED(1) EXPORT Line final { int a; };\n") ==
        "struct Line final { int a; };\n");
  CHECK(text("class FOO { int a; };\nclass BAR : FOO { int b; };\nclass BAZ final { int c; };\n") ==
        "class FOO { int a; };\nclass BAR : FOO { int b; };\nclass BAZ final { int c; };\n");
  CHECK(text("struct POINT origin;\nstruct POINT *next(void);\n") ==
        "struct POINT origin;\nstruct POINT *next(void);\n");
  CHECK(outline_of(Grammar::kCpp, "class SHOP_API Store { int add(); };").at(0).names ==
        std::vector<std::string>{"Store", "add"});
  for (const char* cut : {"class", "class A", "class ABC", "class ABC ", "class ABC(",
                          "class ABC(1)", "class ABC D", "class ABC D :", "class ABC D final"})
    static_cast<void>(text(cut));
}

TEST_CASE("a macro alone on the line before a class or type is left out") {
  CHECK(outline(Grammar::kCpp,
                "#include <a>\n\nQT_BEGIN_NAMESPACE\n\n/** A. */ // b\nclass A : public B {\n  int "
                "a();\n};\n"
                "// more\nG_BEGIN_DECLS\ntypedef struct C C;\nG_END_DECLS\n") ==
        "class A : public B {\n  int a();\n};\ntypedef struct C C;\n");
  CHECK(outline(Grammar::kCpp,
                "enum E {\n  FIRST,\n  LAST\n};\nDWORD\nf(int a);\nint x =\n  MOST;\n") ==
        "enum E {\n  FIRST,\n  LAST\n};\nDWORD\nf(int a);\nint x =\n  MOST;\n");
}

TEST_CASE("what is not for other files is left out") {
  CHECK(
      outline(Grammar::kCpp,
              "#ifndef A_H\n#define A_H\n#define A 1\n#ifndef API\n#define API\n#endif\nint f();\n"
              "#endif\n") == "#define A 1\nint f();\n");
  CHECK(outline(Grammar::kPython, "__all__ = [\"a\"]\n__version__ = \"1\"\na = 1\n") == "a = 1\n");
  CHECK(outline(Grammar::kTsx,
                "const fs = require('fs');\nconst { a } = require('./a');\nvar b = 1;\n") ==
        "var b = 1;\n");
  CHECK(outline(Grammar::kRust,
                "#[cfg(test)]\n// c\nmod test { fn t() {} }\n#[cfg(test)]\nfn helper() {}\n"
                "#[derive(Debug)]\npub struct S;\n") == "pub struct S;\n");
}

TEST_CASE("rules of macros, foreign functions and JavaScript's exports are outlined") {
  CHECK(outline(Grammar::kRust,
                "macro_rules! list {\n    ($($x:expr),*) => {{ let mut v = vec![]; v }};\n}\n"
                "extern \"C\" { pub fn c_call(a: i32) -> i32; }\n") ==
        "macro_rules! list {\n    ($($x:expr),*) => ...;\n}\n"
        "extern \"C\" { pub fn c_call(a: i32) -> i32; }\n");
  CHECK(outline_of(Grammar::kRust, "extern \"C\" { fn c_call(); }").at(0).names ==
        std::vector<std::string>{"c_call"});
  CHECK(outline(Grammar::kTsx,
                "exports.one = function (a) { return a; };\nmodule.exports.two = (b) => b + 1;\n"
                "Shape.prototype.area = function () { return 1; };\nthis.x = 1;\n") ==
        "exports.one = function (a);\nmodule.exports.two = (b) => ...\n"
        "Shape.prototype.area = function ();\n");
  CHECK(outline_of(Grammar::kTsx, "exports.one = () => 1;").at(0).names ==
        std::vector<std::string>{"one"});
}

TEST_CASE("a declaration has its own name first, then those of what is in it") {
  const auto names = [](Grammar grammar, std::string_view text) {
    return outline_of(grammar, text).at(0).names;
  };
  CHECK(names(Grammar::kCpp, "class A { int size() const; enum K { kB }; };") ==
        std::vector<std::string>{"A", "size", "K", "kB"});
  CHECK(names(Grammar::kGo, "package p\nfunc (t *T) M() {}\n") == std::vector<std::string>{"M"});
  CHECK(names(Grammar::kRust, "impl<T> Tr for S<T> { fn f() {} }") ==
        std::vector<std::string>{"S", "f"});
  CHECK(names(Grammar::kPython, "type A[K] = dict[str, K]\n") == std::vector<std::string>{"A"});
  CHECK(names(Grammar::kGo, "package p\nvar a, b = 1, f(c)\n") ==
        std::vector<std::string>{"a", "b"});
  CHECK(names(Grammar::kPython, "x, y = 1, 2\n") == std::vector<std::string>{"x", "y"});
  CHECK(names(Grammar::kTypescript, "export const { a, b: c, d } = e;") ==
        std::vector<std::string>{"a", "b", "c", "d"});
  CHECK(names(Grammar::kPython, "class A:\n    def f(self): pass\n") ==
        std::vector<std::string>{"A", "f"});
}

TEST_CASE("a broken text is outlined as far as it can be read") {
  CHECK(outline(Grammar::kCpp, "int f(int a);\nclass {{{ \n").find("int f(int a);") == 0);
  CHECK(outline(Grammar::kPython, "def f(a): return 1\ndef g(\n").find("def f(a): ...") == 0);
  CHECK(outline_of(Grammar::kNone, "int f();").empty());
}

TEST_CASE(
    "a text that is cut within a class or a header's guard is outlined as far as it is read") {
  std::string members;
  for (int i = 0; members.size() <= kTextBytesMax; ++i)
    members += "  int get_" + std::to_string(i) + "() {\n    int own = 1;\n    return own;\n  }\n";
  const std::string header =
      "#ifndef A_H\n#define A_H\nint counted;\nnamespace n {\nstruct S { int a; };\nclass C {\n "
      "public:\n";
  const std::string cut = outline(Grammar::kCpp, header + members + "};\n}\n#endif\n");
  CHECK(cut.starts_with("int counted;\nstruct S { int a; };\nint get_0();\nint get_1();\n"));
  CHECK(cut.find("own") == std::string::npos);
  std::string script = "export class C extends B {\n";
  for (int i = 0; script.size() <= kTextBytesMax; ++i)
    script += "  get_" + std::to_string(i) + "(a: number) {\n    const own = a;\n  }\n";
  CHECK(outline(Grammar::kTypescript, script + "}\n").starts_with("get_0(a: number);\n"));
}

TEST_CASE("generated, deeply nested and invalid texts take no more than their time") {
  // Twice the time of one parse, for the outline and the imports; and what a look at the tree takes.
#ifdef EFIMD_SANITIZED
  constexpr double kAfterS = 1.5;  // what is left goes on as blanks, which sanitizers slow down
#else
  constexpr double kAfterS = 0.5;
#endif
  constexpr double kSecondsMax = 2 * kParseTimeUs / 1e6 + kAfterS;
  CHECK(slowest_s(repeated("int a_generated_name(int a, int b) { return a + b * 3; }\n",
                           std::size_t{5} << 20),
                  kSecondsMax) < kSecondsMax);
  for (const std::string_view opener :
       {"(", "{", "[", "<", "if (a) {", "a(", "\"", "namespace n {", "f(a, ", "x: ", "\\", "'",
        "f\"{", "a\n b\n", "R\"x(", "/*", "`${", "<a>"}) {
    CHECK(slowest_s(repeated(opener, kTextBytesMax - 10), kSecondsMax) < kSecondsMax);
  }
  CHECK(slowest_s(repeated("\xFF\xFE\x80 int \xC3(", kTextBytesMax - 10), kSecondsMax) <
        kSecondsMax);
  CHECK(slowest_s(std::string(kTextBytesMax, '\0'), kSecondsMax) < kSecondsMax);
  std::mt19937 random(1);
  std::string noise(kTextBytesMax, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  CHECK(slowest_s(noise, kSecondsMax) < kSecondsMax);
}
