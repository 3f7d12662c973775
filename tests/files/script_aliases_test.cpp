#include "daemon/files/script_aliases.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

using namespace efimd;
using context::Alias;
using service::aliases_in;

using Aliases = std::vector<Alias>;

TEST_CASE("TypeScript's settings say where import paths lead") {
  CHECK(aliases_in("/p/tsconfig.base.json",
                   "{ // a comment\n  \"compilerOptions\": { /* \"paths\": 1 */\n"
                   "    \"paths\": {\n      \"@app/*\": [\"./src/*\", \"gen/*\",],\n"
                   "      \"a//b\": [\"../c.ts\"]\n    },\n  },\n}\n") ==
        Aliases{{"/p", "@app/*", {"/p/src/*", "/p/gen/*"}}, {"/p", "a//b", {"/c.ts"}}});
  CHECK(aliases_in("/p/jsconfig.json",
                   R"({"compilerOptions": {"baseUrl": "./src", "paths": {"~*": ["*"]}}})") ==
        Aliases{{"/p", "~*", {"/p/src/*"}}, {"/p", "*", {"/p/src/*"}}});
}

TEST_CASE("a package says where its own imports and what it exports lie") {
  CHECK(aliases_in("/p/ui/package.json",
                   R"({"name": "@shop/ui", "main": "dist/index.js", "source": "source/main.ts",
                       "imports": {"#db": {"node": "./src/db.js", "default": "./src/web.js"}},
                       "exports": {".": "./source/main.ts", "./card/*": ["./source/*.tsx"]}})") ==
        Aliases{{"/p/ui", "#db", {"/p/ui/src/web.js", "/p/ui/src/db.js"}},
                {"", "@shop/ui", {"/p/ui/source/main.ts"}},
                {"", "@shop/ui/card/*", {"/p/ui/source/*.tsx"}},
                {"", "@shop/ui", {"/p/ui/source/main.ts"}},
                {"", "@shop/ui", {"/p/ui/dist/index.js"}}});
  CHECK(aliases_in("/p/package.json", R"({"name": "a", "exports": {"import": "./b.mjs"}})") ==
        Aliases{{"", "a", {"/p/b.mjs"}}});
}

TEST_CASE("settings that are damaged, or of other programs, have no aliases") {
  for (const char* text :
       {"", "{", "[]", "1", "/*", "{\"compilerOptions\": 1}",
        "{\"compilerOptions\": {\"paths\": []}}",
        "{\"compilerOptions\": {\"paths\": {\"a\": [1], \"\": [\"b\"], \"c\": [\"../../../d\"]}}}",
        "{\"name\": 1, \"exports\": {\"\": 2}, \"imports\": [\"a\"]}",
        "{\"compilerOptions\": \"\\"})
    for (const char* file : {"/p/tsconfig.json", "/p/package.json", "/p/other.json"}) {
      INFO(file << ": " << text);
      CHECK(aliases_in(file, text).empty());
    }
  CHECK(aliases_in("/p/composer.json", R"({"compilerOptions": {"baseUrl": "."}})").empty());
}

TEST_CASE("a project's aliases are those of its settings, as many as the limit says") {
  const test::TempDir folder;
  const std::string base = folder.path().string();
  std::ofstream large(base + "/tsconfig.json");
  large << "{\"compilerOptions\": {\"paths\": {";
  for (std::size_t at = 0; at < service::kAliasesMax + 3; ++at)
    large << (at == 0 ? "" : ",") << "\"a" << at << "\": [\"b\"]";
  large << "}}}";
  large.close();
  const auto aliases = service::script_aliases(
      {base + "/a.ts", base + "/none/tsconfig.json", base + "/tsconfig.json"});
  REQUIRE(aliases.size() == service::kAliasesMax);
  CHECK(aliases.front() == Alias{base, "a0", {base + "/b"}});
}
