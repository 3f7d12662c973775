#include "daemon/context/resolve.h"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace efimd::context;
using efimd::syntax::grammar_of;

namespace {

/// The files below /p that `text` at /p/`from` uses, from the project's root.
std::vector<std::string> used(const std::string& from, std::string_view text,
                              const std::vector<std::string>& files) {
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back("/p/" + file);
  const ProjectPaths project("/p", paths);
  std::vector<std::string> found;
  for (const UsedFile& file : used_files(efimd::syntax::imports_of(grammar_of(from), text),
                                         "/p/" + from, grammar_of(from), project)) {
    CHECK_FALSE(file.why.empty());
    found.push_back(file.path.substr(3));
  }
  return found;
}

using Paths = std::vector<std::string>;

}  // namespace

TEST_CASE("an include is sought beside its file, at the root, then by its last folders") {
  const Paths files = {"a/x.h",          "b/x.h",     "a/in/y.h", "include/fmt/core.h",
                       "third/string.h", "z/deep/w.h"};
  CHECK(used("a/m.cpp", "#include \"x.h\"\n#include \"in/../in/y.h\"\n", files) ==
        Paths{"a/x.h", "a/in/y.h"});
  CHECK(used("b/m.cpp", "#include \"a/x.h\"\n#include <fmt/core.h>\n", files) ==
        Paths{"a/x.h", "include/fmt/core.h"});
  CHECK(used("a/m.cpp", "#include <string.h>\n#include \"deep/w.h\"\n#include \"none.h\"\n",
             files) == Paths{"z/deep/w.h"});
}

TEST_CASE("Python's packages are followed from their root, relatively, and into modules") {
  const Paths files = {"src/pkg/__init__.py", "src/pkg/a.py", "src/pkg/sub/__init__.py",
                       "src/pkg/sub/b.py", "os.pyx"};
  CHECK(used("src/pkg/m.py",
             "import os\nfrom . import a\nfrom .sub.b import X\nfrom pkg.sub import b, Y\n",
             files) == Paths{"src/pkg/a.py", "src/pkg/sub/b.py", "src/pkg/sub/__init__.py"});
  CHECK(used("src/pkg/sub/b.py", "from ..a import f\nfrom sub import z\n", files) ==
        Paths{"src/pkg/a.py"});
}

TEST_CASE("Go's imports are folders of the module, and its own package is seen without one") {
  const Paths files = {"go.mod",       "main.go",      "other.go",
                       "main_test.go", "in/tern/a.go", "in/tern/a_test.go"};
  CHECK(used("main.go", "package main\nimport (\n\"fmt\"\n\"example.org/u/p/in/tern\"\n)\n",
             files) == Paths{"in/tern/a.go", "other.go"});
}

TEST_CASE("Rust's paths are followed as far as modules have files") {
  const Paths files = {"src/lib.rs",   "src/a/mod.rs",           "src/a/b.rs",
                       "src/a/b/c.rs", "other-crate/src/lib.rs", "other-crate/src/x.rs"};
  CHECK(used("src/lib.rs", "mod a;\nuse crate::a::b::T;\nuse std::io;\n", files) ==
        Paths{"src/a/mod.rs", "src/a/b.rs"});
  CHECK(used("src/a/b.rs", "mod c;\nuse super::U;\nuse other_crate::x::V;\n", files) ==
        Paths{"src/a/b/c.rs", "src/a/mod.rs", "other-crate/src/x.rs"});
}

TEST_CASE("TypeScript's relative imports are found without their endings") {
  const Paths files = {"src/a.ts", "src/b/index.tsx", "src/c.js", "lib/d.d.ts"};
  CHECK(used("src/m.ts",
             "import a from './a.js';\nimport {b} from \"./b\";\nimport c from './c';\n"
             "import d from '../lib/d';\nimport e from 'react';\nimport f from '@/a';\n",
             files) == Paths{"src/a.ts", "src/b/index.tsx", "src/c.js", "lib/d.d.ts"});
}

TEST_CASE("Java's classes are files of their package") {
  const Paths files = {"src/a/b/C.java", "src/a/b/D.java", "src/a/e/F.java", "src/a/M.java"};
  CHECK(used("src/a/M.java",
             "package a;\nimport a.b.C;\nimport static a.e.F.g;\nimport java.util.List;\n",
             files) == Paths{"src/a/b/C.java", "src/a/e/F.java"});
  CHECK(used("src/a/b/D.java", "package a.b;\n", files) == Paths{"src/a/b/C.java"});
}

TEST_CASE("a path that leaves the root, and an import of itself, mean no file") {
  CHECK(used("a.py", "from ....... import x\nfrom . import a\n", {"a.py"}).empty());
  CHECK(used("a.ts", "import x from '../../../../a';\nimport y from './a';\n", {"a.ts"}).empty());
  CHECK(used("a.c", "#include \"../../../../../etc/passwd\"\n", {"a.c"}).empty());
}
