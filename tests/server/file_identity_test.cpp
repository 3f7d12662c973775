// cache purge, pin and unpin find a file however its editor writes the URI.
#include "daemon/files/file_identity.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "cache_store/store.h"
#include "daemon/server/cache_request.h"
#include "lsp/uri.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;
using Action = CacheRequest::Action;

namespace {

namespace fs = std::filesystem;

constexpr char kHex[] = "0123456789abcdef";

/// `path` with each byte escaped that is not in `plain`.
std::string escaped(const std::string& path, const std::string& plain, bool lower_case) {
  std::string out = "file://";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || plain.find(c) != std::string::npos) {
      out += c;
      continue;
    }
    const std::string digits = {kHex[byte >> 4U], kHex[byte & 15U]};
    out += '%';
    for (const char digit : digits)
      out += lower_case ? digit : static_cast<char>(std::toupper(digit));
  }
  return out;
}

/// What editors write for one path: VS Code, Neovim of two ages, with a host, with needless parts.
std::vector<std::string> spellings(const std::string& path) {
  const std::string plain = "-._~/", sub_delimiters = "!$&'()*+,;=:@";
  const std::string usual = escaped(path, plain, false);
  return {usual,
          escaped(path, plain + sub_delimiters, false),
          escaped(path, plain, true),
          escaped(path, plain + sub_delimiters + "[]", true),
          "file://localhost" + usual.substr(7),
          "file:" + usual.substr(7),
          "FILE:///" + usual.substr(7),
          "file:///./x/.." + usual.substr(7)};
}

struct KeptFiles {
  test::TempDir folder;
  std::unique_ptr<store::Store> store =
      store::Store::open({folder / "kv", std::size_t{64} << 20, {}}).value();

  KeptFiles() { fs::create_directories(folder / "p"); }
  std::string path(const std::string& name) const { return (folder / "p" / name).string(); }
  void keep(const std::string& uri) const { REQUIRE(store->pin(uri, false)); }
  Result<lsp::Json> ask(Action action, const std::string& path) const {
    CacheRequest request;
    request.action = action;
    request.uri = lsp::file_uri(path);
    return serve_cache_request(*store, request);
  }
  std::ptrdiff_t pinned() const {
    const auto documents = store->documents();
    return std::ranges::count_if(documents, [](const auto& each) { return each.pinned; });
  }
  void check_purges(const std::string& path, std::size_t count) const {
    const auto purged = ask(Action::kPurge, path);
    REQUIRE(purged);
    CHECK(purged->at("documents") == count);
    CHECK(store->document_uris().empty());
  }
};

}  // namespace

TEST_CASE("a file is purged under every spelling of its URI") {
  const KeptFiles files;
  for (const char* name : {"a.cpp", "+page.svelte", "(app)", "[slug].ts", "@types", "é+b.cpp",
                           "a b#c?d%e.cpp", "\xF0\x9F\x98\x80.py", "$&',;=!*"}) {
    const std::string path = files.path(name);
    for (const std::string& uri : spellings(path)) {
      INFO(uri);
      files.keep(uri);
      files.check_purges(path, 1);
    }
    const auto all = spellings(path);  // several editors have it open
    for (const std::string& uri : all) files.keep(uri);
    files.check_purges(path, std::set(all.begin(), all.end()).size());
  }
}

TEST_CASE("each byte that a name may have is found") {
  const KeptFiles files;
  for (int byte = 1; byte < 256; ++byte) {
    if (byte == '/') continue;
    const std::string path = files.path("a" + std::string(1, static_cast<char>(byte)) + "b");
    INFO(byte);
    for (const bool lower_case : {false, true}) {
      files.keep(escaped(path, "-._~/", lower_case));
      files.check_purges(path, 1);
    }
  }
}

TEST_CASE("a file is purged through symbolic links, on either side") {
  const KeptFiles files;
  std::ofstream(files.path("a.cpp")) << "int a;";
  fs::create_directory_symlink(files.folder / "p", files.folder / "link");
  fs::create_directory_symlink(files.folder / "p", files.folder / "other");
  const std::string real = files.path("a.cpp"), link = (files.folder / "link/a.cpp").string(),
                    other = (files.folder / "other/a.cpp").string();
  for (const auto& [kept, named] : {std::pair(link, real), std::pair(real, link),
                                    std::pair(link, other), std::pair(other, real)}) {
    INFO(kept << " by " << named);
    files.keep(lsp::file_uri(kept));
    files.check_purges(named, 1);
  }
  files.keep(lsp::file_uri(link));  // a folder takes what is below it
  files.check_purges((files.folder / "other").string(), 1);
  fs::remove(real);  // the file is gone, its folder is not
  files.keep(lsp::file_uri(link));
  files.check_purges(real, 1);
}

TEST_CASE("a purge leaves the neighbours, and says when nothing is kept") {
  const KeptFiles files;
  files.keep(lsp::file_uri(files.path("ab")));
  files.keep("untitled:a");
  for (const Action action : {Action::kPurge, Action::kPin, Action::kUnpin}) {
    const auto answer = files.ask(action, files.path("a"));
    REQUIRE_FALSE(answer);
    CHECK(answer.error().fault == Fault::kNotFound);
    CHECK(answer.error().message().find("nothing of " + files.path("a")) != std::string::npos);
  }
  CHECK(files.store->document_uris().size() == 2);
}

TEST_CASE("what an editor has open is pinned and purged before anything of it is on disk") {
  const KeptFiles files;
  const std::string bare = "file://" + files.path("+page.svelte");
  CacheRequest request;
  request.action = Action::kPin;
  request.uri = lsp::file_uri(files.path("+page.svelte"));
  request.spellings = {bare};
  REQUIRE(serve_cache_request(*files.store, request));
  CHECK(files.store->document_uris() == std::vector<std::string>{bare});
  REQUIRE(files.store->purge(bare));
  request.action = Action::kPurge;
  CHECK(serve_cache_request(*files.store, request)->at("documents") == 1);
}

TEST_CASE("pin and unpin find a file under its editor's spelling") {
  const KeptFiles files;
  for (const std::string& uri : spellings(files.path("+page.svelte"))) {
    files.keep(uri);
    REQUIRE(files.ask(Action::kPin, files.path("+page.svelte")));
    CHECK(files.pinned() == 1);
    REQUIRE(files.ask(Action::kUnpin, files.path("+page.svelte")));
    CHECK(files.pinned() == 0);
    REQUIRE(files.store->purge(uri));
  }
}
