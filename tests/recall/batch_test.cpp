#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "daemon/recall/anchors.h"
#include "daemon/recall/match.h"
#include "daemon/recall/scan.h"
#include "daemon/recall/sorted_batch.h"

using namespace efimd::recall;

namespace {

std::string random_text(std::mt19937& random, std::size_t bytes) {
  std::string text(bytes, ' ');
  for (char& c : text) c = "abab_ (\n\t;"[random() % 10];
  return text;
}

}  // namespace

TEST_CASE("the neighbours of a context's rank agree with it as far as any anchor does") {
  std::mt19937 random(7);
  std::vector<File> files;
  for (int i = 0; i < 5; ++i)
    files.push_back({"f" + std::to_string(i) + ".c", random_text(random, 3000)});
  const Batch batch(files);
  REQUIRE(batch.file_count() == 5);
  REQUIRE(batch.anchor_count() > 1000);
  const Batch empty(std::span<const File>{}), small(std::span<const File>(files).first(1));
  const std::array<const Batch*, 3> batches{&small, &batch, &empty};
  for (int round = 0; round < 300; ++round) {
    const std::string& text = files[random() % 5].text;
    const std::size_t begin = random() % (text.size() - 60);
    const std::string context = text.substr(begin, 1 + random() % 59);
    const Batch::Context sought_here(context), elsewhere(text.substr(0, begin));
    std::vector<Batch::Sought> sought;
    for (const Batch* each : batches) sought.push_back({each, &sought_here});
    for (const Batch* each : batches) sought.push_back({each, &elsewhere});
    const std::vector<std::size_t> ranks = Batch::ranks_of(sought);
    REQUIRE(ranks.size() == sought.size());
    for (std::size_t i = 0; i < batches.size(); ++i) {
      std::size_t best = 0, found = 0;
      for (std::size_t rank = 0; rank < batches[i]->anchor_count(); ++rank)
        best = std::max(best, batches[i]->agreement(rank, context));
      REQUIRE(ranks[i] <= batches[i]->anchor_count());
      if (ranks[i] < batches[i]->anchor_count()) found = batches[i]->agreement(ranks[i], context);
      if (ranks[i] > 0) found = std::max(found, batches[i]->agreement(ranks[i] - 1, context));
      CHECK(found == best);
    }
  }
}

TEST_CASE("a batch is made in small pieces, and is the same as in one") {
  std::mt19937 random(9);
  std::vector<File> files;
  for (int i = 0; i < 4; ++i)
    files.push_back({"f" + std::to_string(i) + ".c", random_text(random, 60'000)});
  std::size_t pieces = 0;
  const Batch batch(files, [&] { ++pieces; });
  const Batch whole(files);
  REQUIRE(batch.anchor_count() == whole.anchor_count());
  // Sorting compares each anchor many times.
  CHECK(pieces > 2 * files.size() + batch.anchor_count() / 1024);
  bool same = true;
  for (std::size_t rank = 0; rank < batch.anchor_count(); ++rank)
    same = same && batch.anchor(rank) == whole.anchor(rank);
  CHECK(same);
}

TEST_CASE("each anchor's file and place are those of its text") {
  std::mt19937 random(8);
  const std::vector<File> files = {{"a.c", random_text(random, 500)},
                                   {"b.c", random_text(random, 700)}};
  const Batch batch(files);
  std::size_t anchors = 0;
  for (const File& file : files)
    for (std::size_t at = 0; at <= file.text.size(); ++at) anchors += is_anchor(file.text, at);
  CHECK(batch.anchor_count() == anchors);
  for (std::size_t rank = 0; rank < batch.anchor_count(); ++rank) {
    const auto at = batch.file_at(batch.anchor(rank));
    CHECK(is_anchor(files[at.file].text, at.byte));
    CHECK(batch.text(at.file) == files[at.file].text);
  }
}

TEST_CASE("a context does not agree beyond the beginning of a file") {
  const std::vector<File> files = {{"a.c", "same_end"}, {"b.c", "thing();\n"}};
  const Batch batch(files);
  const std::string context = "same_endthing(";
  for (std::size_t rank = 0; rank < batch.anchor_count(); ++rank)
    CHECK(batch.agreement(rank, context) <= 8);
}

TEST_CASE("a batch takes the files of its first file's family") {
  const std::vector<File> files = {{"a.c", "int a;\n"}, {"b.py", "b = 1\n"}, {"c.h", "int c;\n"}};
  const BatchPtr batch = make_batch(files);
  CHECK(paths_of(*batch) == std::vector<std::string>{"a.c", "c.h"});
}

TEST_CASE("families join the languages that share text") {
  CHECK(family_of("/x/a.cpp") == family_of("b.H"));
  CHECK(family_of("a.ts") == family_of("b.jsx"));
  CHECK(family_of("a.py") != family_of("a.go"));
  CHECK(family_of("Makefile") == "makefile");
  CHECK(family_of("/x.y/Makefile") == "makefile");
}

TEST_CASE("a cursor is searched from an anchor, wherever it is") {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    const std::string text = random_text(random, 200) + "x";
    const std::size_t cursor = random() % text.size();
    const Probe probe = probe_at(text, cursor);
    REQUIRE(probe.anchor <= cursor);
    // At blanks before blanks there is no anchor: what follows them is searched.
    if (!is_blank(text[probe.anchor]) && !is_line_end(text[probe.anchor]))
      CHECK(is_anchor(text, probe.anchor));
  }
}

TEST_CASE("a scan finds what a search byte by byte finds, the last first") {
  std::mt19937 random(10);
  for (int round = 0; round < 200; ++round) {
    const std::string text = random_text(random, random() % 600);
    const std::string needle = random_text(random, 1 + random() % 4);
    std::vector<std::size_t> wanted;
    for (std::size_t at = text.size() + 1; at-- > 0;)
      if (text.compare(at, needle.size(), needle) == 0) wanted.push_back(at + needle.size());
    CHECK(ends_of(needle, text) == wanted);
    CHECK(ends_of_portably(needle, text) == wanted);
  }
}

TEST_CASE("a line is finished behind what ends lines, and goes on elsewhere") {
  CHECK(place_at("int a;", 6) == Place::kFinished);
  CHECK(place_at("if x:", 5) == Place::kFinished);
  CHECK(place_at("f();\n}", 6) == Place::kFinished);
  CHECK(place_at("int a; // more", 6) == Place::kInside);
  CHECK(place_at("int a", 5) == Place::kInside);
  CHECK(place_at("int a;\n  ", 9) == Place::kStart);
  CHECK(place_at("", 0) == Place::kStart);
}
