#include "daemon/syntax/imports.h"

#include <catch2/catch.hpp>
#include <string>

#include "daemon/syntax/import_part.h"

using namespace efimd::syntax;
using Kind = Import::Kind;

TEST_CASE("a text's language is known by its ending") {
  CHECK(grammar_of("/a/b.c/x.PY") == Grammar::kPython);
  CHECK(grammar_of("x.h") == Grammar::kCpp);
  CHECK(grammar_of("file:///a/x.mjs") == Grammar::kTsx);
  CHECK(grammar_of("/a.py/x") == Grammar::kNone);
  CHECK(grammar_of("") == Grammar::kNone);
}

TEST_CASE("C's includes are read in their order, also inside conditions") {
  CHECK(
      imports_of(Grammar::kC,
                 "#include \"a/b.h\"\n#include <stdio.h>\n#ifdef X\n#include \"c.h\"\n#endif\n") ==
      std::vector<Import>{
          {Kind::kQuoted, "a/b.h"}, {Kind::kSystem, "stdio.h"}, {Kind::kQuoted, "c.h"}});
}

TEST_CASE("Python's imports keep their dots and names") {
  CHECK(imports_of(Grammar::kPython,
                   "import os, sys as s\nfrom . import util\nfrom ..pkg.mod import A, B as C\n"
                   "if TYPE_CHECKING:\n    from x import (Y,\n      Z)\nfrom a.b import *\n") ==
        std::vector<Import>{{Kind::kModule, "os"},
                            {Kind::kModule, "sys"},
                            {Kind::kModule, ".", {"util"}},
                            {Kind::kModule, "..pkg.mod", {"A", "B"}, {{"B", "C"}}},
                            {Kind::kModule, "x", {"Y", "Z"}},
                            {Kind::kModule, "a.b"}});
}

TEST_CASE("a notebook's magics hide no import") {
  const std::vector<Import> wanted{{Kind::kModule, "os"}, {Kind::kModule, "helpers", {"load"}}};
  for (const char* magics :
       {"%matplotlib inline\n", "!pip install 'x\n", "%load_ext autoreload\n%autoreload 2\n",
        "%%time\n", "files = !ls\n", "%cd ..\n?os\n", "load??\n"}) {
    CAPTURE(magics);
    CHECK(imports_of(Grammar::kPython,
                     std::string(magics) + "import os\nfrom helpers import load\n") == wanted);
    CHECK(imports_of(Grammar::kPython, std::string("import os\n") + magics +
                                           "\n\nfrom helpers import load\n") == wanted);
  }
}

TEST_CASE("Go's imports are read alone and in a list") {
  CHECK(imports_of(Grammar::kGo,
                   "package p\nimport \"fmt\"\nimport (\n\tm \"example.org/x/y\"\n)\n") ==
        std::vector<Import>{{Kind::kQuoted, "fmt"}, {Kind::kQuoted, "example.org/x/y"}});
}

TEST_CASE("Rust's lists of uses are taken apart, and child modules are imports") {
  CHECK(imports_of(Grammar::kRust,
                   "use crate::a::{b::C, d as e};\nuse super::x::*;\nmod child;\nmod own {}\n") ==
        std::vector<Import>{{Kind::kModule, "crate::a::b::C"},
                            {Kind::kModule, "crate::a::d"},
                            {Kind::kModule, "super::x"},
                            {Kind::kChild, "child"}});
}

TEST_CASE("TypeScript's and JavaScript's imports, re-exports and requires are read") {
  const std::string text =
      "import { a, b as c } from \"./x\";\nimport D from '../d';\nexport * from \"./re\";\n"
      "const q = require(\"./req\");\nconst n = 1;\n";
  const std::vector<Import> wanted{{Kind::kQuoted, "./x", {"a", "b"}, {{"b", "c"}}},
                                   {Kind::kQuoted, "../d"},
                                   {Kind::kQuoted, "./re"},
                                   {Kind::kQuoted, "./req"}};
  CHECK(imports_of(Grammar::kTypescript, text) == wanted);
  CHECK(imports_of(Grammar::kTsx, text) == wanted);
}

TEST_CASE("modules that are loaded in other ways are read, too") {
  CHECK(imports_of(Grammar::kTypescript,
                   "import a = require('./a');\nconst b = await import('./b');\n") ==
        std::vector<Import>{{Kind::kQuoted, "./a"}, {Kind::kQuoted, "./b"}});
  CHECK(
      imports_of(
          Grammar::kTsx,
          "const { c, d } = require('./cd');\nvar e = require('./e').late;\nlet f = g('./f');\n") ==
      std::vector<Import>{{Kind::kQuoted, "./cd", {"c", "d"}}, {Kind::kQuoted, "./e"}});
}

TEST_CASE("a module that is loaded when it is first drawn is an import") {
  CHECK(imports_of(Grammar::kTsx,
                   "export const A = dynamic(\n  () => import('./A').then((m) => m.A),\n);\n"
                   "const B = lazy(() => import('./B'));\nconst n = f(() => g('./C'));\n") ==
        std::vector<Import>{{Kind::kQuoted, "./A"}, {Kind::kQuoted, "./B"}});
}

TEST_CASE("imports in functions are imports") {
  CHECK(
      imports_of(
          Grammar::kPython,
          "class A:\n    @b\n    def f(self):\n        from .late import C\n        return C\n") ==
      std::vector<Import>{{Kind::kModule, ".late", {"C"}}});
  CHECK(imports_of(Grammar::kRust, "fn f() {\n    use crate::a::B;\n    B::new();\n}\n") ==
        std::vector<Import>{{Kind::kModule, "crate::a::B"}});
}

TEST_CASE("Java's imports say whether they are of all that is in a package") {
  CHECK(imports_of(Grammar::kJava,
                   "package a;\nimport a.c.D;\nimport static a.c.E.f;\nimport a.d.*;\n") ==
        std::vector<Import>{
            {Kind::kModule, "a.c.D"}, {Kind::kModule, "a.c.E.f"}, {Kind::kModule, "a.d.*"}});
}

TEST_CASE("of very many imports the first are read") {
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "#include \"h" + std::to_string(i) + ".h\"\n";
  CHECK(imports_of(Grammar::kCpp, text).size() == kImportsMax);
}

TEST_CASE("what stands after the last import is not read, and what it leaves open is no fault") {
  const std::string guarded =
      "#ifndef A_H\n#if defined(B)\n#include \"b.h\"\nint f() {\n}\n#endif\n";
  CHECK(imports_of(Grammar::kC, guarded) == std::vector<Import>{{Kind::kQuoted, "b.h"}});
  const std::string inner = "import a\nif t:\n    from b import (\n        c)\n    d = c\n";
  CHECK(imports_of(Grammar::kPython, inner) ==
        std::vector<Import>{{Kind::kModule, "a"}, {Kind::kModule, "b", {"c"}}});
  CHECK(imports_of(Grammar::kRust, "use a::b;\nmod t {\n    use super::c;\n    fn f() {}\n}\n") ==
        std::vector<Import>{{Kind::kModule, "a::b"}, {Kind::kModule, "self::c"}});
  CHECK(imports_of(Grammar::kTypescript, "import a from \"./a\"").size() == 1);
  CHECK(imports_of(Grammar::kGo, "package p\n\nimport (\n\t\"a\"") ==
        std::vector<Import>{{Kind::kQuoted, "a"}});
  CHECK(imports_of(Grammar::kC, "int include_all();\n").empty());
}

TEST_CASE("imports stay while a line after or between them is half typed") {
  const std::string guarded =
      "#ifndef A_H\n#include \"a.h\"\nBEGIN\nnamespace n {\ntemplate <typename T,\n";
  CHECK(imports_of(Grammar::kCpp, guarded + "#include \"b.h\"\nint f();\n").size() == 2);
  CHECK(imports_of(Grammar::kCpp, "#ifndef A_H\n} else {\n#include \"a.h\"\n#endif\n").size() == 1);
  const std::string script =
      "import { a } from \"./a\";\nconst b = {\nimport { c } from \"./c\";\n";
  CHECK(imports_of(Grammar::kTypescript, script).at(0) == Import{Kind::kQuoted, "./a", {"a"}});
}

TEST_CASE("an import that the limit of a text cuts is none") {
  const std::string before = "import a\n", cut = "from b import c_and_more\n";
  for (std::size_t kept = 0; kept < cut.size(); ++kept) {
    const std::string text =
        before + std::string(kTextBytesMax - before.size() - kept - 1, '#') + "\n" + cut;
    CHECK(imports_of(Grammar::kPython, text) == std::vector<Import>{{Kind::kModule, "a"}});
  }
  CHECK(imports_of(Grammar::kPython, "import " + std::string(kTextBytesMax, 'a')).empty());
}

TEST_CASE("a name that is a word of imports does not make more of a text be read") {
  const std::string imports = "import { a } from './a';\nexport * from\n  \"./b\";\n";
  for (const char* more : {"const c = Array.from(a);\n", "// from here\n", "from"})
    CHECK(import_part(Grammar::kTypescript, imports + "let x;\n" + more) == imports);
}

TEST_CASE("in modules of a text in Rust, super begins at these") {
  CHECK(imports_of(Grammar::kRust,
                   "use super::a;\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
                   "    use super::{b::C, super::d::E};\n    use self::own;\n    mod deep {\n"
                   "        use super::fixture;\n        use super::super::f;\n"
                   "        use super::super::super::g;\n        use crate::superb;\n"
                   "        fn check() {\n            use super::super::h as i;\n") ==
        std::vector<Import>{{Kind::kModule, "super::a"},
                            {Kind::kModule, "self::b::C"},
                            {Kind::kModule, "super::d::E"},
                            {Kind::kModule, "self::f"},
                            {Kind::kModule, "super::g"},
                            {Kind::kModule, "crate::superb"},
                            {Kind::kModule, "self::h"}});
}

TEST_CASE("what an import calls its names is known") {
  using Renamed = std::vector<Import::Renamed>;
  const auto renamed = [](Grammar grammar, std::string_view text) {
    return imports_of(grammar, text).at(0).renamed;
  };
  CHECK(renamed(Grammar::kPython, "from .a import A, B as C\n") == Renamed{{"B", "C"}});
  CHECK(renamed(Grammar::kTsx, "export { default as D, E } from './d';\n") ==
        Renamed{{"default", "D"}});
  CHECK(renamed(Grammar::kTypescript, "import { type F as G } from './f';\n") ==
        Renamed{{"F", "G"}});
}
