#include "daemon/files/head_keeper.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "daemon/recall/batch.h"
#include "daemon/syntax/grammar.h"
#include "tests/support/stalled_folder.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

namespace {

/// A project with files, and what its keeper delivers.
class Project {
 public:
  Project()
      : keeper_({.exclusions = Exclusions({}, true),
                 .threads = std::make_shared<FileThreads>(),
                 .files = [this](const std::string&) { return listing(); },
                 .deliver = [this](completion::HeadAnswer answer) { take(std::move(answer)); }}) {}
  ~Project() { keeper_.stop(); }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(files_, path(name)) == files_.end()) files_.push_back(path(name));
  }
  void remove(const std::string& name) {
    std::filesystem::remove(path(name));
    const std::lock_guard lock(mutex_);
    std::erase(files_, path(name));
  }
  void changed() { keeper_.project_changed(folder_.path().string()); }
  void open(const std::string& name, const std::string& text,
            std::size_t window_end = std::string::npos, std::size_t window_begin = 0) {
    keeper_.ask({.document = {1, "file://" + path(name)},
                 .snapshot = text::Document(text).snapshot(),
                 .file = {"repository", name},
                 .home = {folder_.path().string(), path(name)},
                 .window_begin = window_begin,
                 .window_end = window_end});
  }
  void close(const std::string& name) {
    keeper_.ask({.document = {1, "file://" + path(name)}, .snapshot = nullptr});
  }
  /// The text of the next head of src/main.c or .ts: "path:declarations" of each slot; "none" for an empty one.
  std::string next() {
    std::unique_lock lock(mutex_);
    const bool came =
        arrived_.wait_for(lock, std::chrono::seconds(60), [&] { return !heads_.empty(); });
    if (!came) return "nothing came";
    const context::HeadPtr head = heads_.front();
    heads_.erase(heads_.begin());
    std::string text;
    for (const context::Slot& slot : head->slots) text += slot.path + ":" + slot.text;
    return text.empty() ? "none" : text;
  }
  /// URIs of the files in the last head that came.
  std::vector<std::string> shown() {
    const std::lock_guard lock(mutex_);
    return shown_;
  }
  HeadKeeper& keeper() { return keeper_; }

 private:
  std::vector<std::string> listing() {
    const std::lock_guard lock(mutex_);
    return files_;
  }
  void take(completion::HeadAnswer answer) {
    const std::lock_guard lock(mutex_);
    if (answer.document.uri.find("/src/main.") == std::string::npos) return;
    heads_.push_back(std::move(answer.head));
    shown_ = std::move(answer.shown);
    arrived_.notify_all();
  }

  test::TempDir folder_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::string> files_;
  std::vector<context::HeadPtr> heads_;
  std::vector<std::string> shown_;
  HeadKeeper keeper_;
};

bool has_grammars() { return syntax::grammar_of("a.h") != syntax::Grammar::kNone; }

constexpr char kUser[] = "#include \"shape.h\"\nint main() { return area(1); }\n";

}  // namespace

TEST_CASE("a document's head comes from the files that it includes, and follows them") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.open("src/main.c", kUser);
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
  // A signature changed.
  project.write("src/shape.h", "int area(long long_side);\n");
  project.changed();
  CHECK(project.next() == "src/shape.h:int area(long long_side);\n");
  // The editor's text of a file comes before the file's, also unsaved.
  project.open("src/shape.h", "int area(int unsaved);\n");
  CHECK(project.next() == "src/shape.h:int area(int unsaved);\n");
  // The same, closed and opened anew: that its edits are counted from the beginning does not matter.
  project.close("src/shape.h");
  project.open("src/shape.h", "int area(int typed_anew);\n");
  CHECK(project.next() == "src/shape.h:int area(int typed_anew);\n");
  project.open("src/shape.h", "int area(int unsaved);\n");
  CHECK(project.next() == "src/shape.h:int area(int unsaved);\n");
  // An import more.
  project.write("src/more.h", "int volume(int a);\n");
  project.changed();
  project.open("src/main.c", std::string("#include \"more.h\"\nint v = volume(2);\n") + kUser);
  CHECK(project.next() == "src/more.h:int volume(int a);\nsrc/shape.h:int area(int unsaved);\n");
  // A file is gone, as after a switch of branches.
  project.remove("src/more.h");
  project.changed();
  CHECK(project.next() == "src/shape.h:int area(int unsaved);\n");
}

TEST_CASE("a document without a head is told so at first, because it may show an earlier one") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.open("src/main.c", kUser);
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
  project.close("src/main.c");
  project.open("src/main.c", "int main() { return area(1); }\n");
  CHECK(project.next() == "none");
  // Without a grammar, too.
  Project other;
  other.write("src/shape.h", "int area(int a);\n");
  other.open("src/main.c", std::string(recall::kFileBytesMax + 1, ' '));
  CHECK(other.next() == "none");
}

TEST_CASE("files that come while a project's files are asked for are seen") {
  if (!has_grammars()) return;
  const test::TempDir folder;
  const std::string root = folder.path().string(), shape = root + "/shape.h";
  std::ofstream(shape) << "int area(int a);\n";
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<context::HeadPtr> heads;
  HeadKeeper* self = nullptr;
  int asked = 0;
  HeadKeeper keeper({.exclusions = Exclusions(),
                     .threads = std::make_shared<FileThreads>(),
                     .files =
                         [&](const std::string&) {
                           if (asked++ > 0) return std::vector{shape};
                           self->project_changed(root);
                           return std::vector{root + "/main.c"};
                         },
                     .deliver =
                         [&](completion::HeadAnswer answer) {
                           const std::lock_guard lock(mutex);
                           heads.push_back(std::move(answer.head));
                           arrived.notify_all();
                         }});
  self = &keeper;
  keeper.ask({{1, "main.c"},
              text::Document(kUser).snapshot(),
              {"repository", "main.c"},
              {root, root + "/main.c"}});
  std::unique_lock lock(mutex);
  CHECK(arrived.wait_for(lock, std::chrono::seconds(60),
                         [&] { return !heads.empty() && !heads.back()->slots.empty(); }));
  lock.unlock();
  keeper.stop();
}

TEST_CASE("a header that only includes others shows what these declare") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/all.h", "#include \"shape.h\"\n#include \"all.h\"\n#include \"main.c\"\n");
  project.write("src/shape.h", "int area(int a);\n");
  project.open("src/main.c", "#include \"all.h\"\nint main() { return area(1); }\n");
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
  // It is known which files the text uses.
  project.write("src/shape.h", "int area(long long_side);\n");
  project.open("src/shape.h", "int area(int unsaved);\n");
  CHECK(project.next() == "src/shape.h:int area(int unsaved);\n");
}

TEST_CASE("an import by an alias of the project's settings brings a head") {
  if (!has_grammars()) return;
  Project project;
  project.write("tsconfig.json", "{\"compilerOptions\": {\"paths\": {\"@kit/*\": [\"gen/*\"]}}}");
  project.write("gen/shape.ts", "export function area(a: number): number { return a * a; }\n");
  project.open("src/main.ts", "import { area } from '@kit/shape';\nconst a = area(1);\n");
  CHECK(project.next() == "gen/shape.ts:function area(a: number): number;\n");
}

TEST_CASE("what a text mentions outside of its window brings no head") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  const std::string text = kUser + std::string("int other = 1;\n");
  project.open("src/main.c", text, std::string_view("#include \"shape.h\"\n").size());
  CHECK(project.next() == "none");
  project.open("src/main.c", text + "\n");
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
}

TEST_CASE("a head stays when its last mention is deleted, until the window moves") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.write("src/more.h", "int volume(int a);\n");
  const std::string includes = "#include \"shape.h\"\n#include \"more.h\"\n";
  project.open("src/main.c", includes + "int a = area(1) + volume(2);\n");
  CHECK(project.next() == "src/shape.h:int area(int a);\nsrc/more.h:int volume(int a);\n");
  project.open("src/main.c", includes + "int a = area(1);\n");
  // Its answer would come before that of a document that is asked for later.
  project.open("src/main.cpp", "int b = 1;\n");
  CHECK(project.next() == "none");
  project.open("src/main.c", includes + "int a = area(1);\n", std::string::npos, includes.size());
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
}

TEST_CASE("a secret, an excluded file and one outside the listing are in no head") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.write(".gitignore", "ignored.h\n");
  std::filesystem::create_directories(project.path(".git"));
  project.write("src/ignored.h", "int ignored_by_git(int a);\n");
  project.write("src/secret.h",
                "int in_secret(int a);\n-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq3\n");
  project.open("src/main.c", std::string("#include \"ignored.h\"\n#include \"secret.h\"\n") +
                                 "int a = ignored_by_git(in_secret(1));\n" + kUser);
  const std::string head = project.next();
  CHECK(head.find("shape.h:int area(int a);\n") != std::string::npos);
  CHECK(head.find("ignored_by_git") == std::string::npos);
  CHECK(head.find("in_secret") == std::string::npos);
}

TEST_CASE("nothing is delivered after stop, and a closed document is forgotten") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.open("src/main.c", kUser);
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
  project.keeper().ask({{1, "file://" + project.path("src/main.c")}, nullptr});
  project.keeper().stop();
  project.changed();
}

TEST_CASE("a purged file is in no head any more, and its documents are answered anew") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.write("src/more.h", "int volume(int a);\n");
  const std::string user = std::string("#include \"more.h\"\nint v = volume(2);\n") + kUser;
  project.open("src/main.c", user);
  CHECK(project.next() == "src/more.h:int volume(int a);\nsrc/shape.h:int area(int a);\n");
  CHECK(project.shown() == std::vector<std::string>{"file://" + project.path("src/more.h"),
                                                    "file://" + project.path("src/shape.h")});
  project.keeper().forget(project.path("src/shape.h"));
  project.changed();
  project.open("src/main.c", user);
  CHECK(project.next() == "src/more.h:int volume(int a);\n");
  // Its editor goes on with it.
  project.keeper().use(project.path("src/shape.h"));
  project.open("src/main.c", user + "\n");
  CHECK(project.next() == "src/more.h:int volume(int a);\nsrc/shape.h:int area(int a);\n");
}

TEST_CASE("after a purge of everything heads are made anew, from the files as they are") {
  if (!has_grammars()) return;
  Project project;
  project.write("src/shape.h", "int area(int a);\n");
  project.open("src/shape.h", "int area(int unsaved);\n");
  project.open("src/main.c", kUser);
  CHECK(project.next() == "src/shape.h:int area(int unsaved);\n");
  project.keeper().forget_all();
  project.open("src/main.c", kUser);
  CHECK(project.next() == "src/shape.h:int area(int a);\n");
}

#ifdef __linux__
TEST_CASE("a project whose file system stalls holds up its own heads only") {
  if (!has_grammars() || !test::StalledFolder::enter_namespace()) return;
  test::TempDir folder;
  std::mutex mutex;
  std::condition_variable arrived;
  std::vector<std::string> heads;
  std::vector<std::string> begun;
  const auto root = [&](const std::string& project) { return (folder.path() / project).string(); };
  const auto write = [&](const std::string& project) {
    std::filesystem::create_directories(root(project) + "/lib");
    std::ofstream(root(project) + "/lib/shape.h") << "int area(int " << project << ");\n";
  };
  HeadKeeper keeper({.exclusions = Exclusions({}, true),
                     .threads = std::make_shared<FileThreads>(),
                     .files =
                         [&](const std::string& each) {
                           const std::lock_guard lock(mutex);
                           begun.push_back(each);
                           arrived.notify_all();
                           return std::vector{each + "/lib/shape.h"};
                         },
                     .deliver =
                         [&](const completion::HeadAnswer& answer) {
                           const std::lock_guard lock(mutex);
                           heads.push_back(answer.document.uri);
                           arrived.notify_all();
                         }});
  const auto open = [&](const std::string& project) {
    const std::string path = root(project) + "/main.c";
    keeper.ask({{1, project},
                text::Document("#include \"lib/shape.h\"\nint a = area(1);\n").snapshot(),
                {"repository", "main.c"},
                {root(project), path}});
  };
  const auto came = [&](const std::vector<std::string>& names, const std::string& name) {
    std::unique_lock lock(mutex);
    return arrived.wait_for(lock, std::chrono::seconds(60),
                            [&] { return std::ranges::find(names, name) != names.end(); });
  };
  for (const char* each : {"stalled", "other"}) write(each);
  {
    const test::StalledFolder stalled(root("stalled") + "/lib");
    if (!stalled.is_mounted()) return;
    open("stalled");
    CHECK(came(begun, root("stalled")));  // so its turn has come: the next thing is to read there
    open("other");
    CHECK(came(heads, "other"));
    const std::lock_guard lock(mutex);
    CHECK(heads.size() == 1);
  }
  // The file system answers again, or rather is gone.
  keeper.project_changed(root("stalled"));
  CHECK(came(heads, "stalled"));
  keeper.stop();
}
#endif
