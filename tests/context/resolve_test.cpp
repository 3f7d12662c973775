#include "daemon/context/resolve.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

using namespace efimd::context;
using efimd::syntax::grammar_of;

namespace {

/// The files below /p that `text` at /p/`from` uses, from the project's root. The manifests are of
/// packages with these names, and the aliases are as settings of the project say them.
std::vector<std::string> used(const std::string& from, std::string_view text,
                              const std::vector<std::string>& files,
                              const std::vector<Package>& packages = {},
                              const std::vector<Alias>& aliases = {}) {
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back("/p/" + file);
  std::vector<Package> named;
  for (const Package& package : packages) named.push_back({package.name, "/p/" + package.manifest});
  const ProjectPaths project("/p", paths, named, aliases);
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

TEST_CASE("of many files that end alike the nearest one is meant") {
  Paths files;
  for (int i = 100; i < 200; ++i) {
    const std::string folder = "service" + std::to_string(i);
    files.insert(files.end(),
                 {folder + "/utils.py", folder + "/in/config.h", folder + "/a/b/C.java"});
  }
  CHECK(used("service180/m.py", "import utils\n", files) == Paths{"service180/utils.py"});
  CHECK(used("service180/m.cpp", "#include \"config.h\"\n", files) ==
        Paths{"service180/in/config.h"});
  CHECK(used("service180/M.java", "import a.b.*;\n", files) == Paths{"service180/a/b/C.java"});
}

TEST_CASE("Python's own modules are not sought in other folders of the project") {
  const Paths files = {"api/main.py", "api/queue.py", "web/types.py", "web/json/__init__.py",
                       "platform/__init__.py"};
  CHECK(used("api/main.py",
             "import types\nimport json.decoder, json\nfrom queue import Q\nimport platform\n",
             files) == Paths{"api/queue.py", "platform/__init__.py"});
}

TEST_CASE("Go's imports are folders of the module, and its own package is seen without one") {
  const Paths files = {"go.mod",       "main.go",      "other.go",
                       "main_test.go", "in/tern/a.go", "in/tern/a_test.go"};
  CHECK(used("main.go", "package main\nimport (\n\"fmt\"\n\"example.org/u/p/in/tern\"\n)\n",
             files) == Paths{"in/tern/a.go", "other.go"});
}

TEST_CASE("Go's imports begin with the name of their module, with or without a host") {
  const Paths files = {"go.mod",       "main.go",        "store/s.go", "errors/e.go",
                       "tools/go.mod", "tools/gen/g.go", "http/h.go"};
  const std::vector<Package> modules = {{"shop", "go.mod"},
                                        {"example.org/shop/tools/v2", "tools/go.mod"}};
  CHECK(used("tools/main.go",
             "package main\nimport (\n\"shop/store\"\n\"net/http\"\n\"github.com/pkg/errors\"\n"
             "\"example.org/shop/tools/v2/gen\"\n\"shop\"\n)\n",
             files, modules) == Paths{"store/s.go", "tools/gen/g.go", "main.go"});
}

TEST_CASE("imports of large packages in Go leave room for the text's own") {
  Paths files = {"go.mod", "main.go", "own.go"};
  for (const char* package : {"a/", "b/", "c/"})
    for (int i = 0; i < 30; ++i) files.push_back(package + std::to_string(i) + ".go");
  const Paths found = used("main.go", "package main\nimport (\n\"m/a\"\n\"m/b\"\n\"m/c\"\n)\n",
                           files, {{"m", "go.mod"}});
  CHECK(found.size() <= kUsedFilesMax);
  CHECK(std::ranges::count(found, "own.go") == 1);
}

TEST_CASE("Rust's paths are followed as far as modules have files") {
  const Paths files = {"src/lib.rs",   "src/a/mod.rs",           "src/a/b.rs",
                       "src/a/b/c.rs", "other-crate/src/lib.rs", "other-crate/src/x.rs"};
  CHECK(used("src/lib.rs", "mod a;\nuse crate::a::b::T;\nuse std::io;\n", files) ==
        Paths{"src/a/mod.rs", "src/a/b.rs"});
  CHECK(used("src/a/b.rs", "mod c;\nuse super::U;\nuse other_crate::x::V;\n", files) ==
        Paths{"src/a/b/c.rs", "src/a/mod.rs", "other-crate/src/x.rs"});
}

TEST_CASE("Rust's tests, programs and crates with other names than their folders are followed") {
  const Paths files = {"src/main.rs",
                       "src/lib.rs",
                       "src/config.rs",
                       "src/bin/tool.rs",
                       "src/bin/args.rs",
                       "tests/common/mod.rs",
                       "tests/common/net.rs",
                       "crates/match/src/lib.rs",
                       "crates/match/src/any.rs"};
  const std::vector<Package> crates = {{"shop", "Cargo.toml"},
                                       {"shop_match", "crates/match/Cargo.toml"}};
  CHECK(used("tests/web.rs", "mod common;\nuse crate::common::net::Peer;\nuse shop::config::C;\n",
             files,
             crates) == Paths{"tests/common/mod.rs", "tests/common/net.rs", "src/config.rs"});
  CHECK(used("src/bin/tool.rs", "mod args;\nuse shop::Shop;\nuse shop_match::any::Any;\n", files,
             crates) == Paths{"src/bin/args.rs", "src/lib.rs", "crates/match/src/any.rs"});
  CHECK(used("src/lib.rs", "pub use config::C;\nuse serde::S;\n", files, crates) ==
        Paths{"src/config.rs"});
  CHECK(used("one/src/a.rs", "use crate::Args;\n", {"one/src/main.rs", "one/src/a.rs"}) ==
        Paths{"one/src/main.rs"});
}

TEST_CASE("TypeScript's relative imports are found without their endings") {
  const Paths files = {"src/a.ts", "src/b/index.tsx", "src/c.js", "lib/d.d.ts"};
  CHECK(used("src/m.ts",
             "import a from './a.js';\nimport {b} from \"./b\";\nimport c from './c';\n"
             "import d from '../lib/d';\nimport e from 'react';\nimport f from '@/a';\n",
             files) == Paths{"src/a.ts", "src/b/index.tsx", "src/c.js", "lib/d.d.ts"});
}

TEST_CASE("TypeScript's packages and aliases are found from the package of the text") {
  const Paths files = {"package.json",        "web/package.json",    "web/src/a.ts",
                       "web/src/pages/a.ts",  "web/src/lib/util.ts", "web/src/ui/button.tsx",
                       "ui-kit/package.json", "ui-kit/src/index.ts", "ui-kit/src/card/index.tsx",
                       "core/package.json",   "core/index.js",       "web/src/pages/eq.ts"};
  const std::vector<Package> packages = {{"root", "package.json"},
                                         {"web", "web/package.json"},
                                         {"@shop/ui", "ui-kit/package.json"},
                                         {"core", "core/package.json"}};
  CHECK(used("web/src/pages/m.tsx",
             "import a from '@/a';\nimport u from '$lib/util';\nimport b from 'ui/button';\n"
             "import {C} from '@shop/ui/card';\nimport k from '@shop/ui';\nimport c from 'core';\n"
             "import r from 'react';\nimport s from '@scope/a';\n",
             files, packages) == Paths{"web/src/a.ts", "web/src/lib/util.ts",
                                       "web/src/ui/button.tsx", "ui-kit/src/card/index.tsx",
                                       "ui-kit/src/index.ts", "core/index.js"});
}

TEST_CASE("TypeScript's imports follow the aliases of the nearest settings") {
  const Paths files = {"libs/shared/src/index.ts",
                       "libs/shared/src/lib/a.ts",
                       "web/src/a.ts",
                       "web/styles/a.ts",
                       "web/gen/b.ts",
                       "src/a.ts",
                       "web/src/deep/c.tsx",
                       "kit/source/entry.ts"};
  const std::vector<Alias> aliases = {
      {"/p", "@app/*", {"/p/src/*"}},
      {"/p", "@shop/shared", {"/p/libs/shared/src/index.ts"}},
      {"/p", "@shop/*", {"/p/libs/*"}},
      {"/p/web", "@app/*", {"/p/web/src/*", "/p/web/gen/*"}},
      {"/p/web", "@app/deep/*", {"/p/web/src/deep/*"}},
      {"/p/web", "*.styles", {"/p/web/styles/*"}},
      {"", "kit", {"/p/kit/dist/entry.js", "/p/kit/source/entry.ts"}}};
  const std::string text =
      "import a from '@app/a';\nimport b from '@app/b';\nimport c from '@app/deep/c';\n"
      "import s from '@shop/shared';\nimport t from '@shop/shared/src/lib/a';\n"
      "import u from 'a.styles';\nimport k from 'kit';\nimport o from '@app/../../../etc/x';\n";
  CHECK(used("web/m.ts", text, files, {}, aliases) ==
        Paths{"web/src/a.ts", "web/gen/b.ts", "web/src/deep/c.tsx", "libs/shared/src/index.ts",
              "libs/shared/src/lib/a.ts", "web/styles/a.ts", "kit/source/entry.ts"});
  CHECK(used("website/m.ts", text, files, {}, aliases) ==
        Paths{"src/a.ts", "libs/shared/src/index.ts", "libs/shared/src/lib/a.ts",
              "kit/source/entry.ts"});
}

TEST_CASE("Java's classes are files of their package") {
  const Paths files = {"src/a/b/C.java", "src/a/b/D.java", "src/a/e/F.java", "src/a/M.java"};
  CHECK(used("src/a/M.java",
             "package a;\nimport a.b.C;\nimport static a.e.F.g;\nimport java.util.List;\n",
             files) == Paths{"src/a/b/C.java", "src/a/e/F.java"});
  CHECK(used("src/a/b/D.java", "package a.b;\n", files) == Paths{"src/a/b/C.java"});
}

TEST_CASE("tests in Java see the package that they are for") {
  const Paths files = {"src/app/src/main/java/a/b/C.java", "src/app/src/test/java/a/b/CTest.java",
                       "src/app/src/test/java/a/b/Help.java", "src/lib/src/main/java/a/b/C.java"};
  CHECK(used("src/app/src/test/java/a/b/CTest.java", "package a.b;\n", files) ==
        Paths{"src/app/src/test/java/a/b/Help.java", "src/app/src/main/java/a/b/C.java"});
  CHECK(used("src/app/src/main/java/a/b/C.java", "package a.b;\n", files).empty());
}

TEST_CASE("a path that leaves the root, and an import of itself, mean no file") {
  CHECK(used("a.py", "from ....... import x\nfrom . import a\n", {"a.py"}).empty());
  CHECK(used("a.ts", "import x from '../../../../a';\nimport y from './a';\n", {"a.ts"}).empty());
  CHECK(used("a.c", "#include \"../../../../../etc/passwd\"\n", {"a.c"}).empty());
}
