#include "cache_store/catalog.h"

#include <algorithm>
#include <catch2/catch.hpp>

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
