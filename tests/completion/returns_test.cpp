// How the user returns to files, and what follows of it for the engine and the store.
#include "daemon/completion/documents/returns.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "daemon/completion/documents/note.h"
#include "daemon/completion/documents/page_keeper.h"
#include "daemon/completion/documents/session_memory.h"
#include "tests/completion/harness.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using completion::Returns;

namespace {

std::string file(int number) { return fmt::format("file:///p/{}", number); }

double half_life(const Returns& returns) {
  return static_cast<double>(returns.half_life_milli()) / 1000;
}

}  // namespace

TEST_CASE("a file that is visited again is kept longer, one that is visited once is not") {
  Returns returns;
  CHECK(returns.visit(file(1)) == 0);
  CHECK(returns.visit(file(2)) == 0);
  const int twice = returns.visit(file(1));
  CHECK(twice > 0);
  CHECK(twice <= half_life(returns) + 1);  // twice as often, at most a half-life longer
  CHECK(returns.visit(file(3)) == 0);
  CHECK(returns.visit(file(1)) > twice);
}

TEST_CASE("an old visit counts less: after many half-lives a file is as a new one") {
  Returns returns;
  returns.visit(file(1));
  returns.visit(file(2));
  returns.visit(file(1));
  for (int other = 3; other < 2000; ++other) returns.visit(file(other));
  CHECK(returns.visit(file(1)) == 0);
}

TEST_CASE("looking into twenty files once leaves the three that one works in behind them all") {
  Returns returns;
  std::uint64_t visits = 0;
  int longer = 0;
  for (int round = 0; round < 10; ++round)
    for (int each = 1; each <= 3; ++each, ++visits) longer = returns.visit(file(each));
  for (int look = 100; look < 120; ++look, ++visits) CHECK(returns.visit(file(look)) == 0);
  CHECK(longer > 20);
}

TEST_CASE("the half-life is the gap within which three of four returns come") {
  std::mt19937 random(3);
  for (const double mean : {8.0, 40.0, 200.0}) {
    Returns returns;
    // Each file comes back after a gap that is spread evenly over octaves around the mean.
    std::map<std::uint64_t, int> due;
    std::vector<double> gaps;
    int files = 0;
    for (std::uint64_t now = 1; now < 20000; ++now) {
      const auto next = due.begin();
      const int which = next != due.end() && next->first <= now ? next->second : ++files;
      if (next != due.end() && next->first <= now) due.erase(next);
      returns.visit(file(which));
      const double gap = mean * std::exp2(static_cast<double>(random() % 4000) / 1000 - 2);
      gaps.push_back(gap);
      std::uint64_t at = now + static_cast<std::uint64_t>(gap);
      while (due.contains(at)) ++at;
      due.emplace(at, which);
    }
    INFO("mean " << mean << ", half-life " << half_life(returns));
    CHECK(half_life(returns) > mean);
    CHECK(half_life(returns) < 4 * mean + 8);
  }
}

TEST_CASE("files are remembered up to a limit, and those that are kept least are forgotten") {
  Returns returns;
  for (int round = 0; round < 3; ++round)
    for (int each = 1; each <= 10; ++each) returns.visit(file(each));
  for (int other = 100; other < 100 + 3 * static_cast<int>(Returns::kDocumentsMax); ++other) {
    if (other % 50 == 0) returns.visit(file(1));
    returns.visit(file(other));
    REQUIRE(returns.documents().size() <= Returns::kDocumentsMax);
  }
  CHECK(returns.documents().contains(file(1)));
  CHECK_FALSE(returns.documents().contains(file(100)));
}

TEST_CASE("a purge forgets a file, a folder or everything") {
  Returns returns;
  for (const char* uri : {"file:///a/x", "file:///b", "file:///a/x", "file:///ab"})
    returns.visit(uri);
  returns.forget("file:///a");
  CHECK_FALSE(returns.documents().contains("file:///a/x"));
  CHECK(returns.documents().contains("file:///ab"));
  CHECK(returns.visit("file:///a/x") == 0);
  returns.forget("");
  CHECK(returns.documents().empty());
  CHECK(half_life(returns) == Returns::kHalfLifeStart);
}

TEST_CASE("what was stored goes on, and damaged numbers do no harm") {
  Returns first;
  for (int round = 0; round < 5; ++round)
    for (int each = 1; each <= 3; ++each) first.visit(file(each));
  Returns second;
  second.load(15, first.half_life_milli(), first.documents());
  CHECK(second.visit(file(1)) == first.visit(file(1)));

  Returns damaged;
  damaged.load(5, std::int64_t{1} << 62, {{file(1), {1000, -7}}, {file(2), {3, 1 << 30}}});
  CHECK(half_life(damaged) == Returns::kHalfLifeMax);
  damaged.visit(file(3));
  CHECK(damaged.visit(file(1)) >= 0);
  CHECK(damaged.visit(file(2)) < 1 << 20);
}

TEST_CASE("the store remembers how the user returned to files, and a purge makes it forget") {
  const test::TempDir folder;
  store::StoreService::Settings settings;
  settings.store = {folder / "kv", std::size_t{64} << 20};
  const auto service = std::make_shared<store::StoreService>(settings);
  REQUIRE(service->wait_opened(std::chrono::seconds(20)));
  const store::ArenaKey arena = {{1, 2}, "model", "f16", 4096};
  const auto visit = [](completion::PageKeeper& keeper, int which) {
    const int longer = keeper.visit(file(which));
    keeper.visited(keeper.source_of(file(which)), longer);
    keeper.set_note(file(which), "a place");
    return longer;
  };
  completion::PageKeeper first(service);
  first.begin(arena);
  for (const int which : {1, 2, 1, 2, 1}) visit(first, which);

  completion::PageKeeper second(service);
  second.begin(arena);
  completion::PageKeeper third(service);
  third.begin(arena);
  const int longer = visit(second, 2);
  CHECK(longer > 0);
  third.forget_returns(file(2));
  CHECK(third.visit(file(2)) == 0);
  CHECK(third.visit(file(1)) > 0);

  REQUIRE(service->run([](store::Store& store) { static_cast<void>(store.purge(file(2))); },
                       std::chrono::seconds(20)));
  completion::PageKeeper fourth(service);
  fourth.begin(arena);
  CHECK(fourth.visit(file(2)) == 0);
  CHECK(fourth.visit(file(1)) > 0);
}

TEST_CASE("a purged file leaves the notes that show it, whatever model they are of") {
  const test::TempDir folder;
  store::StoreService::Settings settings;
  settings.store = {folder / "kv", std::size_t{64} << 20};
  const auto service = std::make_shared<store::StoreService>(settings);
  const std::string shown = file(7);
  completion::Note note;
  note.path = {{1, 2, 3}, {}, 1, 3};
  note.files = {file(6), shown};
  const auto keeper_of = [&](std::uint64_t model) {
    auto keeper = std::make_shared<completion::PageKeeper>(service);
    keeper->begin({{model, 2}, "model", "f16", 4096});
    return keeper;
  };
  const auto first = keeper_of(1);
  first->set_note(file(1), completion::note_text(note));
  note.files = {shown + "7"};
  first->set_note(file(2), completion::note_text(note));
  {
    auto of_service = test::Harness::fixed_window();
    of_service.keeper = keeper_of(2);
    test::Harness harness(test::says("more();"), of_service);
    harness.service->forget({file(5), shown}, [] {});
  }
  const auto again = keeper_of(1);
  CHECK(again->note(file(1)).empty());
  CHECK_FALSE(again->note(file(2)).empty());
}

TEST_CASE("a visit begins when the user turns to a file, not with each request for it") {
  test::Harness harness(test::says("more();"));
  harness.set("int a = ^;", "file:///a");
  harness.set("int b = ^;", "file:///b");
  const auto visits = [&] {
    harness.service.reset();  // the engine thread is done
    return harness.script->visits.load();
  };
  for (const char* uri : {"file:///a", "file:///a", "file:///b", "file:///b", "file:///a"})
    harness.ask(uri);
  CHECK(visits() == 3);
}

TEST_CASE("a file that is closed at once keeps its place, and counts as open only elsewhere") {
  const bool open_elsewhere = GENERATE(false, true);
  const test::TempDir folder;
  constexpr std::size_t kPageBytes = 4096;
  store::StoreService::Settings settings;
  settings.store = {folder / "kv", store::Store::kMetadataBytes + 3 * kPageBytes};
  const auto disk = std::make_shared<store::StoreService>(settings);
  REQUIRE(disk->wait_opened(std::chrono::seconds(20)));
  const auto keeper = std::make_shared<completion::PageKeeper>(disk);
  const store::ArenaKey arena = {{1, 2}, "model", "f16", kPageBytes};
  keeper->begin(arena);
  std::size_t cursor = 0;
  {
    auto of_service = test::Harness::fixed_window();
    of_service.keeper = keeper;
    test::Harness harness(test::says("more();"), of_service);
    harness.set("int a = 1;\nint b = ^;\n");
    cursor = harness.cursors.at("file:///a");
    completion::Request request = harness.request();
    request.may_be_stored = true;
    if (open_elsewhere)
      harness.service->open({{2, request.document.uri}, request.snapshot, true, {}, {}});
    harness.submit(std::move(request)).get();
    harness.service->close({1, "file:///a"});
  }
  std::string note;
  bool other_stays = false;
  REQUIRE(disk->run(
      [&](store::Store& store) {
        if (const auto notes = store.notes(arena.model); notes && notes->contains("file:///a"))
          note = notes->at("file:///a");
        // There is room for two: the closed file's page goes, though the open one's is older.
        const int home = store.use_arena(arena).value();
        const std::vector<std::byte> bytes(arena.page_bytes);
        for (const auto& [number, uri] :
             {std::pair(1, "b"), std::pair(2, "a"), std::pair(3, "c")}) {
          const store::NewPage page{{static_cast<std::uint64_t>(number), 0},
                                    std::nullopt,
                                    {std::string("file:///") + uri},
                                    bytes};
          static_cast<void>(store.keep(home, {&page, 1}));
          store.set_open("file:///b", true);
        }
        other_stays = store.holds({1, 0}) && !store.holds({2, 0});
      },
      std::chrono::seconds(20)));
  const auto noted = completion::parse_note(note);
  REQUIRE(noted);
  CHECK(noted->cursor == cursor);
  CHECK(other_stays != open_elsewhere);
}
