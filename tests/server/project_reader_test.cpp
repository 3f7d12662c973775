#include "daemon/server/project_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "daemon/recall/index.h"

using namespace efimd;
using namespace efimd::service;

namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "efimd-project-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    root = name;
    fs::create_directory(root / ".git");
  }
  ~Folder() { fs::remove_all(root); }
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file, std::ios::binary) << text;
  }
  fs::path root;
};

/// Takes what a reader delivers into an index, and waits for the end of what was asked.
class Owner {
 public:
  explicit Owner(ProjectLimits limits = {}, std::shared_ptr<FileThreads> threads = nullptr,
                 std::chrono::milliseconds stall_max = ProjectReader::kStallMax,
                 std::shared_ptr<completion::InFlight> requests = nullptr, recall::Limits room = {})
      : index_(room),
        reader_(Exclusions({"*.generated.c"}, true),
                [this](ProjectUpdate update) { take(std::move(update)); },
                {limits, std::move(threads), stall_max, std::move(requests)}) {}

  ProjectReader& reader() { return reader_; }
  void wait() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return ends_ > awaited_; });
    ++awaited_;
  }
  void look_at(const Folder& folder, std::string_view family = "c", bool nested = false) {
    reader_.look_at(folder.root, family, nested);
    wait();
  }
  void changed(const Folder& folder, const fs::path& file) {
    reader_.changed(folder.root / file);
    wait();
  }
  /// What is known of the folder, relative to it.
  std::set<std::string> files(const Folder& folder) {
    const std::lock_guard lock(mutex_);
    std::set<std::string> names;
    for (const std::string& path : files_)
      names.insert(fs::path(path).lexically_relative(folder.root).generic_string());
    return names;
  }
  /// Waits until small batches were made one.
  void wait_for_merge() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return merges_ > 0; });
  }
  std::vector<std::string> order() {
    const std::lock_guard lock(mutex_);
    return families_;
  }
  std::string continued(const Folder& folder, const std::string& text) {
    const std::lock_guard lock(mutex_);
    const std::string project = folder.root.generic_string(), path = project + "/typed.c";
    return index_.draft({{project, path}, text, text.size()}, 40).text;
  }

 private:
  void take(ProjectUpdate update) {
    const std::lock_guard lock(mutex_);
    for (const std::string& path : update.removed) files_.erase(path);
    if (update.merge) ++merges_;
    if (update.files && !update.merge) {
      for (const std::string& path : recall::paths_of(*update.files)) files_.insert(path);
      families_.push_back(recall::family_of(recall::paths_of(*update.files).front()));
    }
    apply(update, index_);
    if (update.is_last) ++ends_;
    arrived_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::set<std::string> files_;
  std::vector<std::string> families_;
  recall::Index index_;
  int ends_ = 0, awaited_ = 0, merges_ = 0;
  ProjectReader reader_;  ///< last: it delivers until it is gone
};

using Names = std::set<std::string>;

}  // namespace

TEST_CASE("a project's files are read, in folders, too") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  folder.write("deep/er/b.c", "int b;\n");
  Owner owner;
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"a.c", "deep/er/b.c"});
  REQUIRE(owner.reader().status().size() == 1);
  CHECK(owner.reader().status()[0].files == 2);
  CHECK(owner.reader().status()[0].left_out.empty());
}

TEST_CASE("ignored, excluded, secret and hidden files are not read") {
  const Folder folder;
  folder.write(".gitignore", "build/\n*.tmp.c\n");
  folder.write("build/made.c", "int made;\n");
  folder.write("x.tmp.c", "int x;\n");
  folder.write("y.generated.c", "int y;\n");
  folder.write(".env", "KEY=1\n");
  folder.write("credentials.json", "{}\n");
  folder.write(".cache/z.c", "int z;\n");
  folder.write("node_modules/m/m.c", "int m;\n");
  folder.write("kept.c", "int kept;\n");
  Owner owner;
  owner.look_at(folder);
  const Names files = owner.files(folder);
  CHECK(files == Names{".gitignore", "kept.c"});
}

TEST_CASE("a folder that a list of what to keep leaves in is read") {
  const Folder folder;
  folder.write(".gitignore", "*\n!*/\n!*.c\n");
  folder.write("in/kept.c", "int kept;\n");
  folder.write("in/left.h", "int left;\n");
  Owner owner;
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"in/kept.c"});
}

TEST_CASE("binary, huge and machine-made files are left out") {
  const Folder folder;
  folder.write("binary.c", std::string("a\0b", 3));
  folder.write("huge.json", std::string(recall::kFileBytesMax + 1, 'x'));
  folder.write("minified.js", std::string(20'000, 'x'));
  folder.write("empty.c", "");
  folder.write("kept.c", "int kept;\n");
  Owner owner;
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"kept.c"});
}

TEST_CASE("a pipe that nobody writes to and a file of 500 MB hold nobody up") {
  const Folder folder;
  folder.write("kept.c", "int kept;\n");
  REQUIRE(::mkfifo((folder.root / "pipe.c").c_str(), 0600) == 0);
  folder.write("data.json", "{}");
  fs::resize_file(folder.root / "data.json", std::uintmax_t{500} << 20);  // sparse
  Owner owner;
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"kept.c"});
  owner.changed(folder, "pipe.c");
  owner.changed(folder, "data.json");
  CHECK(owner.files(folder) == Names{"kept.c"});
  CHECK(owner.reader().status()[0].bytes < 100);
}

TEST_CASE("links are not followed, so that loops end") {
  const Folder folder, elsewhere;
  elsewhere.write("theirs.c", "int theirs;\n");
  folder.write("in/kept.c", "int kept;\n");
  fs::create_directory_symlink(folder.root, folder.root / "in/loop");
  fs::create_directory_symlink(elsewhere.root, folder.root / "out");
  fs::create_symlink(elsewhere.root / "theirs.c", folder.root / "theirs.c");
  Owner owner;
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"in/kept.c"});
  owner.changed(folder, "out/theirs.c");
  CHECK(owner.files(folder) == Names{"in/kept.c"});
}

TEST_CASE("what a project may cost is bounded, and the bound is told") {
  const Folder folder;
  for (int i = 0; i < 20; ++i)
    folder.write("d/f" + std::to_string(i) + ".c", "int some_name_here;\n");
  SECTION("in files") {
    Owner owner({.files = 5});
    owner.look_at(folder);
    CHECK(owner.files(folder).size() == 5);
    CHECK(owner.reader().status()[0].left_out == "files");
  }
  SECTION("in bytes") {
    Owner owner({.bytes = 100});
    owner.look_at(folder);
    CHECK(owner.files(folder).size() == 5);
    CHECK(owner.reader().status()[0].left_out == "bytes");
  }
  SECTION("in depth") {
    Owner owner({.depth = 0});
    owner.look_at(folder);
    CHECK(owner.files(folder).empty());
    CHECK(owner.reader().status()[0].left_out == "depth");
  }
  SECTION("in entries") {
    Owner owner({.entries = 3});
    owner.look_at(folder);
    CHECK(owner.files(folder).size() <= 3);
    CHECK(owner.reader().status()[0].left_out == "entries");
  }
  SECTION("in time") {
    const bool of_processor = GENERATE(true, false);
    ProjectLimits limits;
    (of_processor ? limits.processor_time : limits.time) = std::chrono::milliseconds(0);
    Owner owner(limits);
    owner.look_at(folder);  // which has no time to list
    CHECK(owner.reader().status()[0].left_out == "time");
    owner.changed(folder, "d/f0.c");  // which is not listed, and has no time to be read
    CHECK(owner.files(folder).empty());
  }
}

TEST_CASE("where a project is at its limit, a file that changes is read anew or leaves") {
  const Folder folder;
  folder.write("a.c", "first_function(first_argument);\n");
  Owner owner({.bytes = 40});
  owner.look_at(folder);
  folder.write("b.c", "int some_name_here;\n");
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"a.c"});
  CHECK(owner.reader().status()[0].left_out == "bytes");
  SECTION("read anew") {
    folder.write("a.c", "first_function(other_argument);\n");
    owner.changed(folder, "a.c");
    CHECK(owner.continued(folder, "first_function(").substr(0, 14) == "other_argument");
  }
  SECTION("a secret now") {
    folder.write("a.c",
                 "-----BEGIN RSA "
                 "PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq8\n-----END\n");
    owner.changed(folder, "a.c");
    CHECK(owner.files(folder).empty());
  }
  SECTION("too large now") {
    folder.write("a.c", "first_function(first_argument);\nint more_than_there_is_room_for;\n");
    owner.look_at(folder);
    CHECK(owner.files(folder) == Names{"b.c"});
  }
}

TEST_CASE("what the index had no room for is read at the next look") {
  const Folder first, second;
  std::string filler;
  for (int i = 0; i < 10'000; ++i) filler += "int a" + std::to_string(i) + ";\n";
  first.write("a.c", "first_function(first_argument);\n" + filler);
  second.write("b.c", "other_function(other_argument);\n" + filler);
  Owner owner({}, nullptr, ProjectReader::kStallMax, nullptr, {.budget_bytes = 500'000});
  owner.look_at(first);
  CHECK(owner.continued(first, "first_function(").substr(0, 14) == "first_argument");
  owner.look_at(second);
  CHECK(owner.continued(first, "first_function(").empty());
  // Heads still find it.
  CHECK(owner.reader().files(first.root.generic_string()).size() == 1);
  CHECK(owner.reader().status()[first.root < second.root ? 0 : 1].files == 0);
  owner.look_at(first);
  CHECK(owner.continued(first, "first_function(").substr(0, 14) == "first_argument");
}

TEST_CASE("another repository below is a project of its own, unless a workspace has both") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  folder.write("other/.git/HEAD", "ref: refs/heads/main\n");
  folder.write("other/b.c", "int b;\n");
  Owner owner;
  owner.look_at(folder);
  owner.changed(folder, "other/b.c");
  CHECK(owner.files(folder) == Names{"a.c"});
  owner.look_at(folder, "c", true);
  CHECK(owner.files(folder) == Names{"a.c", "other/b.c"});
}

TEST_CASE("what git tracks is read, also where it would ignore it") {
  const Folder folder;
  folder.write(".gitignore", "*.made.c\nout/\n");
  for (const char* name :
       {"a.made.c", "b.made.c", "out/c.c", "out/d.c", ".hidden/e.c", ".hidden/f.c"})
    folder.write(name, "int a;\n");
  const std::string git = "cd '" + folder.root.string() + "' && git ";
  const std::string quiet = " >/dev/null 2>&1";
  REQUIRE(std::system((git + "init -q ." + quiet).c_str()) == 0);
  REQUIRE(std::system((git + "add -f a.made.c out/c.c .hidden/e.c" + quiet).c_str()) == 0);
  Owner owner;
  owner.look_at(folder);
  const Names tracked = {".gitignore", ".hidden/e.c", "a.made.c", "out/c.c"};
  CHECK(owner.files(folder) == tracked);
  // A notice of one of them takes another look.
  folder.write("a.made.c", "first_function(first_argument);\n");
  owner.changed(folder, "a.made.c");
  CHECK(owner.files(folder) == tracked);
  CHECK(owner.continued(folder, "first_function(").substr(0, 14) == "first_argument");
}

TEST_CASE("a notice of a folder is one of all its files") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  folder.write("sub/b.c", "int b;\n");
  folder.write(".gitignore", "out/\n");
  Owner owner;
  owner.look_at(folder);
  fs::remove_all(folder.root / "sub");
  owner.changed(folder, "sub");
  CHECK(owner.files(folder) == Names{".gitignore", "a.c"});
  folder.write("new/deep/c.c", "int c;\n");
  owner.changed(folder, "new");
  CHECK(owner.files(folder) == Names{".gitignore", "a.c", "new/deep/c.c"});
  folder.write("out/d.c", "int d;\n");
  folder.write("e.c", "int e;\n");
  owner.changed(folder, "out");
  CHECK(owner.files(folder) == Names{".gitignore", "a.c", "new/deep/c.c"});
}

TEST_CASE("files of the family that is asked for come first") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  folder.write("b.py", "b = 1\n");
  Owner owner;
  owner.look_at(folder, "py");
  CHECK(owner.order() == std::vector<std::string>{"py", "c"});
}

TEST_CASE("another look finds what was changed, added and removed") {
  const Folder folder;
  folder.write("a.c", "first_function(first_argument);\n");
  folder.write("b.c", "int b;\n");
  Owner owner;
  owner.look_at(folder);
  CHECK(owner.continued(folder, "first_function(").substr(0, 14) == "first_argument");
  folder.write("a.c", "first_function(another_argument, 2);\n");
  fs::remove(folder.root / "b.c");
  folder.write("c.c", "int c;\n");
  owner.look_at(folder);
  CHECK(owner.files(folder) == Names{"a.c", "c.c"});
  CHECK(owner.continued(folder, "first_function(").substr(0, 16) == "another_argument");
}

TEST_CASE("a notice of one file reads that file alone") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  Owner owner;
  owner.look_at(folder);
  folder.write("b.c", "int b;\n");
  folder.write("c.c", "int c;\n");
  owner.changed(folder, "b.c");
  CHECK(owner.files(folder) == Names{"a.c", "b.c"});
  fs::remove(folder.root / "a.c");
  owner.changed(folder, "a.c");
  CHECK(owner.files(folder) == Names{"b.c"});
}

TEST_CASE("files that change one by one are merged, and their newest text is found") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  Owner owner;
  owner.look_at(folder);
  constexpr int kFiles = 40;
  const auto name = [](int i) { return "f" + std::to_string(i) + ".c"; };
  const auto line = [](int i, const std::string& argument) {
    return "function_" + std::to_string(i) + "_called(" + argument + ");\n";
  };
  for (int i = 0; i < kFiles; ++i) {
    folder.write(name(i), line(i, "first_" + std::to_string(i)));
    owner.changed(folder, name(i));
  }
  owner.wait_for_merge();
  folder.write(name(3), line(3, "second_3"));
  owner.changed(folder, name(3));
  fs::remove(folder.root / name(4));
  owner.changed(folder, name(4));
  for (int i = 0; i < kFiles; ++i) {
    const std::string found = owner.continued(folder, "function_" + std::to_string(i) + "_called(");
    const std::string said = (i == 3 ? "second_" : "first_") + std::to_string(i) + ");";
    CAPTURE(i);
    CHECK((i == 4) != found.starts_with(said));
  }
}

TEST_CASE("a file that comes to be ignored leaves at once") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  folder.write("b.c", "int b;\n");
  Owner owner;
  owner.look_at(folder);
  folder.write(".gitignore", "b.c\n");
  owner.changed(folder, ".gitignore");
  CHECK(owner.files(folder) == Names{".gitignore", "a.c"});
  folder.write("d.c", "int d;\n");
  owner.changed(folder, "d.c");
  CHECK(owner.files(folder) == Names{".gitignore", "a.c", "d.c"});
  fs::create_directories(folder.root / ".git/info");
  folder.write(".git/info/exclude", "d.c\n");
  owner.changed(folder, ".git/info/exclude");
  CHECK(owner.files(folder) == Names{".gitignore", "a.c"});
}

TEST_CASE("a file that was code and is binary now leaves") {
  const Folder folder;
  folder.write("a.c", "int a;\n");
  Owner owner;
  owner.look_at(folder);
  folder.write("a.c", std::string("in\0 a;\n", 7));
  owner.changed(folder, "a.c");
  CHECK(owner.files(folder).empty());
}

TEST_CASE("reading makes way for a request, and ends although it is never answered") {
  const Folder folder;
  for (int i = 0; i < 8; ++i) folder.write("f" + std::to_string(i) + ".c", "int a;\n");
  const auto requests = std::make_shared<completion::InFlight>();
  requests->began();
  ProjectLimits limits;
  limits.processor_time = completion::MakingWay::kWaitMin;  // to wait takes none of it
  Owner owner(limits, nullptr, ProjectReader::kStallMax, requests);
  const auto begin = std::chrono::steady_clock::now();
  owner.look_at(folder);
  CHECK(std::chrono::steady_clock::now() - begin >= completion::MakingWay::kWaitMin);
  CHECK(owner.files(folder).size() == 8);
  CHECK(owner.reader().status()[0].left_out.empty());
}

TEST_CASE("the reader of a project is gone before what it delivers to") {
  const Folder folder;
  for (int i = 0; i < 200; ++i) folder.write("f" + std::to_string(i) + ".c", "int a;\n");
  for (int i = 0; i < 5; ++i) {
    Owner owner;
    owner.reader().look_at(folder.root, "c");
  }
  SUCCEED();
}

TEST_CASE("a project is the innermost workspace folder, or the git working tree") {
  const Folder folder;
  folder.write("in/a.c", "int a;\n");
  const fs::path file = folder.root / "in/a.c";
  CHECK(project_of(file, {}) == folder.root);
  const std::vector<fs::path> workspace = {folder.root, folder.root / "in", "/elsewhere"};
  CHECK(project_of(file, workspace) == folder.root / "in");
  const std::vector<fs::path> whole = {"/"};
  CHECK(project_of(file, whole) == folder.root);
  fs::remove_all(folder.root / ".git");
  CHECK(project_of(file, {}) == std::nullopt);
}

TEST_CASE(
    "a project whose disk stalls does not keep others from being read, and the status says so") {
  const Folder stalled, other;
  stalled.write("a.c", "int a;\n");
  other.write("b.c", "int b;\n");
  std::promise<void> open;
  std::atomic<bool> first = true;
  // The first work hangs, as in the kernel, until the gate opens.
  const auto threads = std::make_shared<FileThreads>([&, gate = open.get_future().share()] {
    if (first.exchange(false)) gate.wait();
  });
  Owner owner(ProjectLimits(), threads, std::chrono::milliseconds(20));
  owner.reader().look_at(stalled.root, "c");
  owner.look_at(other);
  CHECK(owner.files(other).contains("b.c"));
  const auto is_stalled = [&](const Folder& folder) {
    const auto rows = owner.reader().status();
    return std::ranges::any_of(rows, [&](const ProjectStatus& row) {
      return row.project == folder.root.generic_string() && row.stalled;
    });
  };
  CHECK(is_stalled(stalled));
  while (is_stalled(other)) std::this_thread::yield();  // a busy machine may let it pause, not hang
  open.set_value();
  owner.wait();
  CHECK(owner.files(stalled).contains("a.c"));
  while (is_stalled(stalled)) std::this_thread::yield();
}
