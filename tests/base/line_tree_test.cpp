#include "base/line_tree.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <random>
#include <vector>

using efimd::LineTree;

namespace {

template <typename Key>
void check_counts(std::size_t count, Key keys_max) {
  INFO(count << " keys up to " << keys_max);
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<Key> keys(count);
  for (Key& key : keys) key = static_cast<Key>(random() % (std::uint64_t{keys_max} + 1));
  std::ranges::sort(keys);
  const LineTree<Key> tree(count);
  std::vector<Key> all(tree.size());
  std::ranges::copy(keys, all.begin() + static_cast<std::ptrdiff_t>(tree.begin()));
  tree.build(all);
  for (Key key = 0; key <= keys_max; ++key) {
    const auto less = std::ranges::lower_bound(keys, key) - keys.begin();
    const auto not_more = std::ranges::upper_bound(keys, key) - keys.begin();
    REQUIRE(tree.count(all.data(), [&](Key other) { return other < key; }) ==
            static_cast<std::size_t>(less));
    REQUIRE(tree.count(all.data(), [&](Key other) { return other <= key; }) ==
            static_cast<std::size_t>(not_more));
  }
}

}  // namespace

TEST_CASE("A tree of lines counts the keys before one as a binary search does") {
  for (const std::size_t count : {0, 1, 7, 8, 9, 16, 63, 64, 65, 511, 512, 513, 4097}) {
    check_counts<std::uint64_t>(count, 3);  // most are equal
    check_counts<std::uint64_t>(count, 900);
    check_counts<std::uint32_t>(count, 900);
  }
}

TEST_CASE("A tree of lines takes a seventh more than its keys, or a line a level") {
  CHECK(LineTree<std::uint64_t>(0).size() == 0);
  CHECK(LineTree<std::uint64_t>(8).size() == 8);
  CHECK(LineTree<std::uint64_t>(9).size() == 24);
  const std::size_t many = 1'000'000;
  CHECK(LineTree<std::uint64_t>(many).size() < many * 8 / 7 + 64);
}
