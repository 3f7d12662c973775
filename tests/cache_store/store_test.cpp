#include "cache_store/store.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <span>

#include "tests/cache_store/store_fixture.h"

using namespace efimd;
using namespace efimd::test;

namespace {

unsigned mode(const std::filesystem::path& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_mode & 0777U;
}

/// Whether the bytes of page `number`, or a part of them, are anywhere in the arena files.
bool on_disk(const std::filesystem::path& folder, int number) {
  const std::vector<std::byte> page = test_page(number).bytes;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".kv") continue;
    const std::vector<std::byte> file = file_bytes(entry.path());
    for (std::size_t at = 0; at + 64 <= page.size(); at += 512)
      if (std::search(file.begin(), file.end(), page.begin() + static_cast<std::ptrdiff_t>(at),
                      page.begin() + static_cast<std::ptrdiff_t>(at + 64)) != file.end())
        return true;
  }
  return false;
}

}  // namespace

TEST_CASE("pages that were kept are there after the store was opened again") {
  const ScratchFolder scratch;
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    CHECK(keep_chain(*store.store, kA, 0, 10) == 10);
    CHECK(look_up(*store.store, 4) == Found::kRight);
    CHECK(look_up(*store.store, 10) == Found::kMissing);
  }
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  for (int number = 0; number < 10; ++number) CHECK(look_up(*store.store, number) == Found::kRight);
  CHECK(store.told->empty());
  const auto documents = store->documents();
  REQUIRE(documents.size() == 1);
  CHECK(documents[0].uri == kA);
  CHECK(documents[0].model_name == "model-7");
  CHECK(documents[0].pages == 10);
}

TEST_CASE("ST-2: files are 0600 in a 0700 folder, whatever the umask") {
  const ScratchFolder scratch;
  const mode_t before = ::umask(0);
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 2);
  ::umask(before);
  CHECK(mode(scratch.store()) == 0700);
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.store())) {
    INFO(entry.path());
    CHECK(mode(entry.path()) == 0600);
    ++files;
  }
  CHECK(files >= 3);
}

TEST_CASE("a page that two documents share belongs to both, and goes with either") {
  const ScratchFolder scratch;
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 3);
  REQUIRE(store->add_source(test_page(0).digest, kB));
  CHECK(store->documents().size() == 2);
  store.store.reset();
  store = open_store(scratch.store());
  REQUIRE(store);
  const auto purged = store->purge(kB);
  REQUIRE(purged);
  CHECK(purged->pages == 3);  // pages 1 and 2 are after page 0
  CHECK(look_up(*store.store, 0) == Found::kMissing);
}

TEST_CASE("the note of a document that shared purged pages goes with them") {
  const ScratchFolder scratch;
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 3);
  keep_chain(*store.store, kB, 100, 102);
  const Digest model = test_arena(7).model;
  REQUIRE(store->set_note(kA, model, "tokens of B"));
  REQUIRE(store->set_note(kB, model, "its own"));
  REQUIRE(store->add_source(test_page(0).digest, kB));
  REQUIRE(store->purge(kB));
  CHECK(store->notes(model).value().empty());
}

TEST_CASE("after a purge no byte of the document's pages is in any file") {
  const ScratchFolder scratch;
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 5);
  keep_chain(*store.store, kB, 100, 105);
  // A page whose slot is free, but not yet used again, is as much the document's.
  REQUIRE(store->drop(test_page(4).digest));
  REQUIRE(on_disk(scratch.store(), 3));
  REQUIRE(on_disk(scratch.store(), 4));
  const auto purged = store->purge(kA);
  REQUIRE(purged);
  CHECK(purged->pages == 4);
  for (int number = 0; number < 5; ++number) {
    CHECK_FALSE(on_disk(scratch.store(), number));
    CHECK(look_up(*store.store, number) == Found::kMissing);
    CHECK(look_up(*store.store, 100 + number) == Found::kRight);
  }
  store.store.reset();
  const std::vector<std::byte> database = file_bytes(scratch.store() / "store.db");
  const std::string text(reinterpret_cast<const char*>(database.data()), database.size());
  CHECK(text.find(kA) == std::string::npos);
  CHECK(text.find(kB) != std::string::npos);
}

TEST_CASE("one purge takes several documents, and slots that were freed before a restart") {
  const ScratchFolder scratch;
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 5);
  keep_chain(*store.store, kB, 100, 105);
  keep_chain(*store.store, "file:///c", 200, 203);
  REQUIRE(store->drop(test_page(4).digest));
  store.store.reset();
  store = open_store(scratch.store());
  REQUIRE(on_disk(scratch.store(), 4));
  const std::vector<std::string> uris = {kA, "file:///unknown", kB};
  CHECK(store->purge(uris).value().pages == 9);
  for (int number = 0; number < 5; ++number) {
    CHECK_FALSE(on_disk(scratch.store(), number));
    CHECK_FALSE(on_disk(scratch.store(), 100 + number));
  }
  CHECK(look_up(*store.store, 202) == Found::kRight);
  CHECK(store->page_counts() == std::map<std::string, std::size_t>{{"file:///c", 3}});
  // Their slots are used again.
  CHECK(keep_chain(*store.store, kA, 0, 5) == 5);
  CHECK(look_up(*store.store, 4) == Found::kRight);
}

TEST_CASE("a model's purge takes its arena and leaves the others") {
  const ScratchFolder scratch;
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 3);
  const auto other = store->use_arena(test_arena(8));
  REQUIRE(other);
  const TestPage page = test_page(50);
  const store::NewPage fresh = page.of(kA);
  REQUIRE(store->keep(*other, {&fresh, 1}).value_or(0) == 1);
  const Digest model = test_arena(7).model;
  REQUIRE(store->set_note(kA, model, "tokens of the heads of seven"));
  REQUIRE(store->set_note(kA, test_arena(8).model, "of eight"));
  CHECK_FALSE(store->purge_model("no such model"));
  const auto purged = store->purge_model("model-7");
  REQUIRE(purged);
  CHECK(purged->pages == 3);
  CHECK(look_up(*store.store, 0) == Found::kMissing);
  CHECK(look_up(*store.store, 50) == Found::kRight);
  // What their prompts showed of other files is as good as text.
  CHECK(store->notes(model).value().empty());
  CHECK(store->notes(test_arena(8).model).value().at(kA) == "of eight");
  for (const char* const file : {"store.db", "store.db-wal"}) {
    const std::vector<std::byte> bytes = file_bytes(scratch.store() / file);
    const auto text = std::as_bytes(std::span(std::string_view("tokens of the heads of seven")));
    CHECK(std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) == bytes.end());
  }
}

TEST_CASE("purge of everything leaves an empty store that works") {
  const ScratchFolder scratch;
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 3);
  REQUIRE(store->purge_all());
  CHECK_FALSE(on_disk(scratch.store(), 0));
  CHECK(store->documents().empty());
  CHECK(keep_chain(*store.store, kA, 0, 3) == 3);
  CHECK(look_up(*store.store, 2) == Found::kRight);
}

TEST_CASE("what is remembered of a document and its pin come back, for its model alone") {
  const ScratchFolder scratch;
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  const Digest model{1, 2};
  REQUIRE(store->set_note(kA, model, "where the cursor was"));
  REQUIRE(store->pin(kA, true));
  store.store.reset();
  store = open_store(scratch.store());
  REQUIRE(store);
  CHECK(store->notes(model).value() ==
        std::map<std::string, std::string>{{kA, "where the cursor was"}});
  CHECK(store->notes(Digest{3, 4}).value().empty());
  REQUIRE(store->documents().size() == 1);
  CHECK(store->documents()[0].pinned);
  CHECK_FALSE(store->set_note(kA, model, std::string(100'000, 'x')));
}

TEST_CASE("one process at a time uses the folder") {
  const ScratchFolder scratch;
  const OpenStore first = open_store(scratch.store());
  REQUIRE(first);
  const OpenStore second = open_store(scratch.store());
  REQUIRE_FALSE(second);
  CHECK(second.error.fault == Fault::kNotReady);
  CHECK_THAT(second.error.message(), Catch::Contains("another efimd"));
  keep_chain(*first.store, kA, 0, 2);
  CHECK(look_up(*first.store, 1) == Found::kRight);
}

TEST_CASE("the store of one model, form or size of KV is never read for another") {
  const ScratchFolder scratch;
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  store::ArenaKey key = test_arena();
  const int first = store->use_arena(key).value();
  CHECK(store->use_arena(key).value() == first);
  key.kv_type = "q8 test";
  CHECK(store->use_arena(key).value() != first);
  key = test_arena();
  key.page_bytes *= 2;
  CHECK(store->use_arena(key).value() != first);
  CHECK_FALSE(store->use_arena({key.model, "", "f16", store::Store::kPageBytesMax + 1}));
  CHECK_FALSE(store->use_arena({key.model, "", "f16", 0}));
  keep_chain(*store.store, kA, 0, 1);
  std::vector<std::byte> twice(2 * kPageBytes);
  CHECK(store->read(test_page(0).digest, twice) == store::Store::Read::kMissing);
}

TEST_CASE("what the user returns to is kept longer, also after the store was opened again") {
  const ScratchFolder scratch;
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    store->visit(kA, 0, 64000);
    keep_chain(*store.store, kA, 0, 2);
    store->visit(kB, 0, 64000);
    keep_chain(*store.store, kB, 10, 12);
    store->visit(kA, 5, 63000);
    REQUIRE(store->use(kA));
    store->visit(kB, 0, 62000);
    REQUIRE(store->use(kB));
  }
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  const store::Visits visits = store->visits();
  CHECK(visits.count == 4);
  CHECK(visits.half_life == 62000);
  CHECK(visits.documents.at(kA).last == 3);
  CHECK(visits.documents.at(kA).longer == 5);
  CHECK(visits.documents.at(kB).last == 4);
  CHECK(visits.documents.at(kB).longer == 0);

  store.store.reset();
  store = open_store(scratch.store(), store::Store::kMetadataBytes + 4 * kSlotBytes);
  REQUIRE(store);
  CHECK(look_up(*store.store, 1) == Found::kRight);
  CHECK(look_up(*store.store, 11) == Found::kMissing);
}

TEST_CASE("a purge takes what is known of the user's returns") {
  const ScratchFolder scratch;
  OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  for (const std::string& uri : {kA, kB}) {
    keep_chain(*store.store, uri, uri == kA ? 0 : 10, uri == kA ? 2 : 12);
    store->visit(uri, 3, 64000);
    REQUIRE(store->use(uri));
  }
  REQUIRE(store->purge(kA));
  CHECK_FALSE(store->visits().documents.contains(kA));
  CHECK(store->visits().documents.at(kB).longer == 3);
  REQUIRE(store->purge_all());
  store.store.reset();
  store = open_store(scratch.store());
  REQUIRE(store);
  CHECK(store->visits().documents.empty());
  CHECK(store->visits().half_life == 0);
}

namespace {

// Counts files without a name that SQLite opens: they lie in the system's temporary folder.
int unnamed_files = 0;
int (*open_named)(sqlite3_vfs*, sqlite3_filename, sqlite3_file*, int, int*);

int count_unnamed(sqlite3_vfs* vfs, sqlite3_filename name, sqlite3_file* file, int flags,
                  int* out_flags) {
  if (name == nullptr) ++unnamed_files;
  return open_named(vfs, name, file, flags, out_flags);
}

}  // namespace

TEST_CASE("ST-2: a purge writes nothing outside of the store's folder") {
  const ScratchFolder scratch;
  sqlite3_initialize();
  sqlite3_vfs counting = *sqlite3_vfs_find(nullptr);
  counting.zName = "counting";
  counting.pNext = nullptr;
  open_named = std::exchange(counting.xOpen, count_unnamed);
  sqlite3_vfs_register(&counting, 1);
  {
    const OpenStore store = open_store(scratch.store());
    REQUIRE(store);
    const std::string note(store::Metadata::kNoteBytesMax, 'n');
    for (int number = 0; number < 80; ++number)
      REQUIRE(store->set_note("file:///" + std::to_string(number), test_arena().model, note));
    REQUIRE(store->purge("file:///1"));
  }
  sqlite3_vfs_unregister(&counting);
  CHECK(unnamed_files == 0);
}

TEST_CASE("forgetting the note of a document that was purged does not name it again") {
  const ScratchFolder scratch;
  const OpenStore store = open_store(scratch.store());
  REQUIRE(store);
  keep_chain(*store.store, kA, 0, 3);
  REQUIRE(store->purge(kA));
  REQUIRE(store->set_note(kA, test_arena().model, ""));
  CHECK(store->document_uris().empty());
}

TEST_CASE("the database counts in the budget, and old notes go from one that outgrew it") {
  const ScratchFolder scratch;
  const std::size_t budget = std::size_t{16} << 20;
  const std::string note(store::Metadata::kNoteBytesMax, 'n');
  constexpr int kNotes = 160;  // 10 MiB
  const auto uri = [](int number) { return "file:///" + std::to_string(number); };
  {
    const OpenStore store = open_store(scratch.store(), budget);
    REQUIRE(store);
    REQUIRE(keep_chain(*store.store, kA, 0, 1000) > 900);
    for (int number = 0; number < kNotes; ++number) {
      REQUIRE(store->set_note(uri(number), test_arena().model, note));
      REQUIRE(store->use(uri(number)));
    }
  }
  const OpenStore store = open_store(scratch.store(), budget);
  REQUIRE(store);
  const auto notes = store->notes(test_arena().model);
  REQUIRE(notes);
  CHECK(notes->size() * note.size() <= store::Store::kNotesBytesMin);
  CHECK(notes->contains(uri(kNotes - 1)));
  CHECK_FALSE(notes->contains(uri(0)));
  CHECK(std::filesystem::file_size(scratch.store() / "store.db") <= store::Store::kMetadataBytes);
  CHECK(store->usage().disk_bytes <= budget);
  CHECK(store->usage().pages > 900);
}
