#include "cache_store/catalog.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

using namespace efimd;
using namespace efimd::store;

namespace {

Digest page(std::uint64_t number) { return {number, 0}; }

StoredPage stored(std::optional<std::uint64_t> parent, SourceId source, std::uint64_t last_use) {
  StoredPage entry;
  if (parent) entry.parent = page(*parent);
  entry.sources = {source};
  entry.last_use = last_use;
  return entry;
}

std::vector<std::uint64_t> given_up(Catalog& catalog) {
  std::vector<std::uint64_t> order;
  while (const auto victim = catalog.victim()) {
    order.push_back(victim->low);
    catalog.remove(*victim);
  }
  return order;
}

}  // namespace

TEST_CASE("pages are given up leaves first, oldest use first") {
  Catalog catalog;
  catalog.add(page(1), stored(std::nullopt, 1, 10));
  catalog.add(page(2), stored(1, 1, 11));
  catalog.add(page(3), stored(std::nullopt, 2, 5));
  catalog.add(page(4), stored(1, 1, 3));
  CHECK(given_up(catalog) == std::vector<std::uint64_t>{4, 3, 2, 1});
}

TEST_CASE("a child that comes before its parent is its child all the same") {
  Catalog catalog;
  catalog.add(page(2), stored(1, 1, 1));
  catalog.add(page(1), stored(std::nullopt, 1, 0));
  CHECK(given_up(catalog) == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("open documents are given up last, pinned ones never") {
  Catalog catalog;
  catalog.set_open(1, true);
  catalog.add(page(1), stored(std::nullopt, 1, 1));
  catalog.add(page(2), stored(std::nullopt, 2, 2));
  catalog.add(page(3), stored(std::nullopt, 3, 0));
  catalog.set_pinned(3, true);
  CHECK(given_up(catalog) == std::vector<std::uint64_t>{2, 1});
  CHECK(catalog.holds(page(3)));
  catalog.set_pinned(3, false);
  CHECK(given_up(catalog) == std::vector<std::uint64_t>{3});
}

TEST_CASE("a document's use makes all its pages the youngest") {
  Catalog catalog;
  catalog.add(page(1), stored(std::nullopt, 1, 1));
  catalog.add(page(2), stored(std::nullopt, 2, 2));
  catalog.use(1, 3);
  CHECK(given_up(catalog) == std::vector<std::uint64_t>{2, 1});
}

TEST_CASE("a document that is kept longer goes later, and never before a child or an open one") {
  Catalog catalog;
  catalog.keep_longer(1, 25);
  catalog.add(page(1), stored(std::nullopt, 1, 10));
  catalog.add(page(2), stored(1, 2, 20));
  catalog.add(page(3), stored(std::nullopt, 3, 30));
  catalog.add(page(4), stored(std::nullopt, 3, 40));
  catalog.add(page(5), stored(std::nullopt, 4, 1));
  catalog.set_open(4, true);
  SECTION("by so many uses") {
    CHECK(given_up(catalog) == std::vector<std::uint64_t>{2, 3, 1, 4, 5});
  }
  SECTION("until that changes") {
    catalog.keep_longer(1, 0);
    CHECK(given_up(catalog) == std::vector<std::uint64_t>{2, 1, 3, 4, 5});
  }
  SECTION("with what it shares with others") {
    catalog.add_source(page(3), 1);
    CHECK(given_up(catalog) == std::vector<std::uint64_t>{2, 1, 4, 3, 5});
  }
}

TEST_CASE("under thousands of random changes the order is that of a catalog made anew") {
  std::mt19937 random(5);
  Catalog catalog;
  std::map<SourceId, std::uint64_t> longer;
  std::set<SourceId> open;
  std::uint64_t time = 0;
  for (int step = 0; step < 3000; ++step) {
    const std::uint64_t number = 1 + random() % 40;
    const auto source = static_cast<SourceId>(1 + random() % 6);
    switch (random() % 6) {
      case 0:
        longer[source] = random() % 30;
        catalog.keep_longer(source, longer[source]);
        break;
      case 1:
        catalog.use(source, ++time);
        break;
      case 2:
        catalog.add_source(page(number), source);
        break;
      case 3:
        if (const auto victim = catalog.victim()) catalog.remove(*victim);
        break;
      case 4:
        catalog.set_open(source, open.insert(source).second || open.erase(source) == 0);
        break;
      default:
        catalog.add(page(number),
                    stored(number > 1 ? std::optional(number / 2) : std::nullopt, source, ++time));
    }
    if (step % 50 != 0) continue;
    Catalog anew;
    for (const Catalog::Row& row : catalog.rows()) anew.add(row.page, row.stored);
    for (const auto& [each, uses] : longer) anew.keep_longer(each, uses);
    for (const SourceId each : open) anew.set_open(each, true);
    INFO("step " << step);
    REQUIRE(catalog.victim() == anew.victim());
    if (step == 2950) CHECK(given_up(catalog) == given_up(anew));
  }
}

TEST_CASE("what is behind a document's pages is purged with them, its neighbours are not") {
  Catalog catalog;
  catalog.add(page(1), stored(std::nullopt, 1, 1));  // shared beginning
  catalog.add_source(page(1), 2);
  catalog.add(page(2), stored(1, 1, 1));
  catalog.add(page(3), stored(1, 2, 1));
  catalog.add(page(4), stored(3, 9, 1));  // after a page of document 2
  const auto sorted = [](std::vector<Digest> pages) {
    std::ranges::sort(pages);
    return pages;
  };
  CHECK(sorted(catalog.pages_behind(2)) == std::vector<Digest>{page(1), page(2), page(3), page(4)});
  CHECK(sorted(catalog.pages_behind(9)) == std::vector<Digest>{page(4)});
  CHECK(catalog.pages_behind(7).empty());
}
