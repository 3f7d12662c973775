// What a session tells of files and folders: whose text recall knows, and when it is forgotten.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/server/fake_editor.h"

using namespace efimd;
using test::FakeEditor;
using test::Json;

namespace {

namespace fs = std::filesystem;

struct WatchedFolder {
  WatchedFolder() {
    std::string name = (fs::temp_directory_path() / "efimd-watch-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
    fs::create_directories(root / "one/deep");
    fs::create_directories(root / "two");
  }
  ~WatchedFolder() { fs::remove_all(root); }
  std::string uri(const std::string& path) const { return "file://" + (root / path).string(); }
  fs::path root;
};

Json folder_json(const std::string& uri) { return {{"uri", uri}, {"name", "folder"}}; }

void change_folders(FakeEditor& editor, const Json& added, const Json& removed) {
  editor.notify("workspace/didChangeWorkspaceFolders",
                {{"event", {{"added", added}, {"removed", removed}}}});
}

void remove_folder(FakeEditor& editor, const std::string& uri) {
  change_folders(editor, Json::array(), Json::array({folder_json(uri)}));
}

std::string project_of_last(const FakeEditor& editor) {
  return editor.host.opened.back().home.project;
}

}  // namespace

TEST_CASE("a file outside git belongs to the innermost workspace folder that holds it") {
  const WatchedFolder folder;
  FakeEditor editor;
  editor.folders = Json::array({folder_json(folder.uri("one")), folder_json(folder.uri("two/"))});
  editor.initialize();
  editor.open("int a;", folder.uri("one/deep/a.c"));
  CHECK(project_of_last(editor) == folder.root / "one");
  editor.open("int b;", folder.uri("two/b.c"));
  CHECK(project_of_last(editor) == folder.root / "two");
  CHECK(editor.host.projects == std::vector<std::string>{folder.root / "one", folder.root / "two"});
  editor.open("int c;", folder.uri("c.c"));
  CHECK(project_of_last(editor) == folder.root / "c.c");  // a project of its own
}

TEST_CASE("workspace folders that come and go count for the next file that is opened") {
  const WatchedFolder folder;
  FakeEditor editor;
  editor.initialize();
  change_folders(editor, Json::array({folder_json(folder.uri("one"))}), Json::array());
  editor.open("int a;", folder.uri("one/a.c"));
  CHECK(project_of_last(editor) == folder.root / "one");
  remove_folder(editor, folder.uri("one/"));
  editor.open("int b;", folder.uri("one/b.c"));
  CHECK(project_of_last(editor) == folder.root / "one/b.c");
}

TEST_CASE("open documents move to a workspace folder that is added and holds them") {
  const WatchedFolder folder;
  FakeEditor editor;
  editor.initialize();
  editor.open("int a;", folder.uri("one/a.c"));
  editor.open("int b;", folder.uri("two/b.c"));
  editor.open("int c;", "untitled:c.c");
  CHECK(editor.host.projects.empty());
  change_folders(editor, Json::array({folder_json(folder.uri("one"))}), Json::array());
  CHECK(editor.session->is_in(folder.root / "one"));
  CHECK(editor.host.projects == std::vector<std::string>{folder.root / "one"});
  CHECK(editor.host.forgotten == std::vector<std::string>{folder.root / "one/a.c"});
  REQUIRE(editor.host.revised.size() == 1);
  CHECK(editor.host.revised[0].first == folder.root / "one/a.c");
  editor.complete(1, 0, 6, folder.uri("one/a.c"));
  CHECK(editor.last_submitted().request.home.project == folder.root / "one");
  CHECK(editor.last_submitted().request.home.in_workspace);
  change_folders(editor, Json::array({folder_json(folder.uri("one"))}), Json::array());  // again
  CHECK(editor.host.forgotten.size() == 1);
}

TEST_CASE("the documents of a workspace folder that is removed move to another project") {
  const WatchedFolder folder;
  FakeEditor editor;
  editor.folders = Json::array({folder_json(folder.uri("")), folder_json(folder.uri("one"))});
  editor.initialize();
  editor.open("int a;", folder.uri("one/a.c"));
  editor.open("int b;", folder.uri("two/b.c"));
  REQUIRE(editor.session->is_in(folder.root / "one"));
  editor.host.judges_at_once = false;
  remove_folder(editor, folder.uri("one"));
  CHECK(editor.session->is_in(folder.root / "one"));  // until its documents are judged
  REQUIRE(editor.host.waiting_judgements.size() == 1);
  editor.host.waiting_judgements.front()({});  // its file system does not answer
  CHECK_FALSE(editor.session->is_in(folder.root / "one"));
  editor.host.waiting_judgements.front()(
      service::facts_of(editor.host.excluded, folder.uri("one/a.c")));
  CHECK_FALSE(editor.session->is_in(folder.root / "one"));
  CHECK(editor.session->is_in(folder.root));
  CHECK(editor.host.forgotten == std::vector<std::string>{folder.root / "one/a.c"});
  CHECK(editor.host.changed_files == editor.host.forgotten);
  CHECK(editor.host.revised.back().first == folder.root / "one/a.c");
  CHECK(editor.host.projects.back() == folder.root);
  CHECK(editor.host.left == std::vector<std::string>(3, folder.root / "one"));

  const std::size_t revised = editor.host.revised.size();
  remove_folder(editor, folder.uri("three"));  // which was none
  CHECK(editor.host.left.size() == 3);
  editor.host.judges_at_once = true;
  remove_folder(editor, folder.uri(""));
  CHECK_FALSE(editor.session->is_in(folder.root));
  CHECK(editor.host.revised.size() == revised + 2);
}

TEST_CASE("a document stays in its project if that is a git repository, too") {
  const WatchedFolder folder;
  fs::create_directory(folder.root / ".git");
  FakeEditor editor;
  editor.folders = Json::array({folder_json(folder.uri(""))});
  editor.initialize();
  editor.open("int a;", folder.uri("one/a.c"));
  remove_folder(editor, folder.uri(""));
  CHECK(editor.session->is_in(folder.root));
  CHECK(editor.host.forgotten.empty());
}

TEST_CASE("an editor that can is asked for notices of files, one that cannot is not") {
  const Json able = {{"workspace", {{"didChangeWatchedFiles", {{"dynamicRegistration", true}}}}}};
  const auto asked = [](FakeEditor& editor) { return editor.sent("client/registerCapability"); };
  FakeEditor with, without, off;
  with.initialize(able);
  REQUIRE(asked(with).size() == 1);
  CHECK(asked(with)[0].at("registrations").at(0).at("method") == "workspace/didChangeWatchedFiles");
  without.initialize();
  CHECK(asked(without).empty());
  off.host.settings.completion.recall = false;
  off.initialize(able);
  CHECK(asked(off).empty());
}

TEST_CASE("the project of an editor that watches no files is looked at while its user types") {
  const WatchedFolder folder;
  const auto looks_after_changes = [&](bool watches) {
    FakeEditor editor;
    editor.folders = Json::array({folder_json(folder.uri("one"))});
    const Json watching = {
        {"workspace", {{"didChangeWatchedFiles", {{"dynamicRegistration", watches}}}}}};
    editor.initialize(watching);
    editor.open("int a;", folder.uri("one/a.c"));
    const std::size_t opened = editor.host.projects.size();
    for (int version = 2; version < 6; ++version)
      editor.notify("textDocument/didChange",
                    {{"textDocument", {{"uri", folder.uri("one/a.c")}, {"version", version}}},
                     {"contentChanges", {{{"text", "int a" + std::to_string(version)}}}}});
    CHECK(editor.host.revised.size() == 4);
    return editor.host.projects.size() - opened;
  };
  CHECK(looks_after_changes(false) == 1);  // and not again within a minute
  CHECK(looks_after_changes(true) == 0);
}

TEST_CASE("files that were made, changed or removed are handed on; of very many, all are meant") {
  FakeEditor editor;
  editor.initialize();
  const auto notice = [&](int count) {
    Json changes = Json::array();
    for (int i = 0; i < count; ++i)
      changes.push_back({{"uri", "file:///p/f" + std::to_string(i) + ".c"}, {"type", 1 + i % 3}});
    editor.notify("workspace/didChangeWatchedFiles", {{"changes", changes}});
  };
  notice(3);
  CHECK(editor.host.changed_files == std::vector<std::string>{"/p/f0.c", "/p/f1.c", "/p/f2.c"});
  editor.host.changed_files.clear();
  notice(static_cast<int>(lsp::kWatchedFilesMax) + 1);
  CHECK(editor.host.changed_files == std::vector<std::string>{""});
}

TEST_CASE("a document that becomes a secret leaves recall at once, also if nobody asks again") {
  FakeEditor editor;
  editor.initialize();
  editor.open("int a;\n");
  editor.change(2, test::range(1, 0, 1, 0),
                "-----BEGIN "
                "RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n");
  CHECK(editor.host.forgotten == std::vector<std::string>{"/src/a.cpp"});
}

TEST_CASE("a document that git comes to ignore leaves recall at once") {
  const WatchedFolder folder;
  fs::create_directory(folder.root / ".git");
  FakeEditor editor;
  editor.host.excluded = service::Exclusions({}, true);
  editor.initialize();
  editor.open("int a;\n", folder.uri("one/a.c"));
  editor.open("int b;\n", folder.uri("two/b.c"));
  REQUIRE_FALSE(editor.host.opened.at(0).home.path.empty());
  std::ofstream(folder.root / ".gitignore") << "one/\n";
  const Json change = {{"uri", folder.uri(".gitignore")}, {"type", 2}};
  editor.notify("workspace/didChangeWatchedFiles", {{"changes", Json::array({change})}});
  CHECK(editor.host.forgotten == std::vector<std::string>{folder.root / "one/a.c"});
}

TEST_CASE("a document that git does not ignore any more comes to recall, and is stored") {
  const WatchedFolder folder;
  fs::create_directory(folder.root / ".git");
  std::ofstream(folder.root / ".gitignore") << "one/\ntwo/\n";
  FakeEditor editor;
  editor.host.excluded = service::Exclusions({}, true);
  editor.initialize();
  editor.open("int a;\n", folder.uri("one/a.c"));
  editor.open("int b;\n", folder.uri("two/b.c"));
  REQUIRE(editor.host.opened.at(0).home.path.empty());
  REQUIRE_FALSE(editor.host.opened.at(0).may_be_stored);
  std::ofstream(folder.root / ".gitignore") << "two/\n";
  const Json change = {{"uri", folder.uri(".gitignore")}, {"type", 2}};
  editor.notify("workspace/didChangeWatchedFiles", {{"changes", Json::array({change})}});
  CHECK(editor.host.forgotten.empty());
  REQUIRE(editor.host.revised.size() == 1);
  CHECK(editor.host.revised[0].first == folder.root / "one/a.c");
  editor.complete(1, 0, 3, folder.uri("one/a.c"));
  CHECK(editor.last_submitted().request.may_be_stored);
  CHECK(editor.last_submitted().request.home.project == folder.root);
  editor.complete(2, 0, 3, folder.uri("two/b.c"));
  CHECK_FALSE(editor.last_submitted().request.may_be_stored);
}
