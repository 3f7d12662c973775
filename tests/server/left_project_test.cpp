// A project that is left: nothing of it is known, and nothing more of it is delivered.
#include <algorithm>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "daemon/server/project_reader.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using namespace efimd::service;

namespace {

namespace fs = std::filesystem;

struct Tree {
  Tree() { fs::create_directory(folder / ".git"); }
  void write(const std::string& file, const std::string& text) const {
    std::ofstream(folder / file, std::ios::binary) << text;
  }
  std::string project() const { return folder.path().generic_string(); }
  const test::TempDir folder;
};

/// What was delivered, and a reader that delivers it.
class Deliveries {
 public:
  ProjectReader& reader() { return reader_; }
  std::size_t of(const Tree& folder) {
    const std::lock_guard lock(mutex_);
    return count(folder.project(), false);
  }
  void wait_for(const Tree& folder, bool is_last) {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return count(folder.project(), is_last) > 0; });
  }

 private:
  std::size_t count(const std::string& project, bool is_last) const {
    return static_cast<std::size_t>(
        std::ranges::count_if(updates_, [&](const ProjectUpdate& update) {
          return update.project == project && (update.is_last || !is_last);
        }));
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<ProjectUpdate> updates_;
  ProjectReader reader_{Exclusions({}, true),
                        [this](ProjectUpdate update) {
                          const std::lock_guard lock(mutex_);
                          updates_.push_back(std::move(update));
                          arrived_.notify_all();
                        },
                        {}};
};

}  // namespace

TEST_CASE("a project that is left is known no more, and can be looked at again") {
  const Tree one, two;
  one.write("a.c", "int first_one;\n");
  two.write("b.c", "int first_two;\n");
  Deliveries deliveries;
  ProjectReader& reader = deliveries.reader();
  reader.look_at(one.project(), "c");
  reader.look_at(two.project(), "c");
  deliveries.wait_for(one, true);
  deliveries.wait_for(two, true);
  reader.leave(one.project());
  reader.changed(one.folder / "a.c");  // of no project that is known
  REQUIRE(reader.status().size() == 1);
  CHECK(reader.status()[0].project == two.project());
  CHECK(reader.files(one.project()).empty());
  CHECK(reader.files(two.project()).size() == 1);
  one.write("c.c", "int second_one;\n");
  const std::size_t before = deliveries.of(one);
  reader.look_at(one.project(), "c");
  const Tree last;
  last.write("d.c", "int last;\n");
  reader.look_at(last.project(), "c");
  deliveries.wait_for(last, true);  // projects are read one after another
  CHECK(reader.files(one.project()).size() == 2);
  CHECK(deliveries.of(one) > before);
}

TEST_CASE("nothing of a project is delivered after it was left while it was read") {
  const Tree folder, next;
  std::string words;
  for (int word = 0; word < 1200; ++word) words += "int x" + std::to_string(word) + ";\n";
  for (int file = 0; file < 500; ++file)  // seconds of sorting
    folder.write(std::to_string(file) + ".c", "int number_" + std::to_string(file) + ";\n" + words);
  next.write("n.c", "int next;\n");
  Deliveries deliveries;
  deliveries.reader().look_at(folder.project(), "c");
  deliveries.wait_for(folder, false);  // the first batch is small
  deliveries.reader().leave(folder.project());
  const std::size_t before = deliveries.of(folder);
  deliveries.reader().look_at(next.project(), "c");
  deliveries.wait_for(next, true);
  CHECK(deliveries.of(folder) == before);
  CHECK(deliveries.reader().files(folder.project()).empty());
}
