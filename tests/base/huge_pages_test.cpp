#include "base/huge_pages.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <vector>

using namespace efimd;

TEST_CASE("a large table begins at a huge page, and any size can be written and read") {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{4096}, kHugePageBytes - 1,
                                  kHugePageBytes, 2 * kHugePageBytes + 3, 5 * kHugePageBytes / 2}) {
    std::vector<std::uint8_t, RandomAccessAllocator<std::uint8_t>> table(bytes);
    if (bytes >= kHugePageBytes)
      CHECK(reinterpret_cast<std::uintptr_t>(table.data()) % kHugePageBytes == 0);
    std::iota(table.begin(), table.end(), std::uint8_t{0});
    CHECK(table.back() == static_cast<std::uint8_t>(bytes - 1));
    table.resize(bytes + kHugePageBytes);
    CHECK(table[bytes - 1] == static_cast<std::uint8_t>(bytes - 1));
  }
}

TEST_CASE("what a table takes is counted: at most half a huge page more than its bytes") {
  CHECK(random_access_bytes(1000) == 1000);
  CHECK(random_access_bytes(3 * kHugePageBytes) == 3 * kHugePageBytes);
  CHECK(random_access_bytes(3 * kHugePageBytes - 1) == 3 * kHugePageBytes);
  const std::size_t little_more = random_access_bytes(3 * kHugePageBytes + 1);
  CHECK(little_more > 3 * kHugePageBytes);
  CHECK(little_more < 3 * kHugePageBytes + kHugePageBytes / 2);
}

TEST_CASE("a table for which there is no memory throws") {
  CHECK_THROWS_AS(allocate_for_random_access(std::numeric_limits<std::size_t>::max()),
                  std::bad_alloc);
  CHECK_THROWS_AS(allocate_for_random_access(std::size_t{1} << 60U), std::bad_alloc);
}
