#include "base/memory_reserve.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <new>
#include <vector>

using namespace efimd;

#ifndef EFIMD_SANITIZED  // whose memory has no such limit

namespace {

/// Allocates small pieces until there are none; how many there were. They are not freed.
int allocate_all() {
  int count = 0;
  try {
    for (;; ++count) static_cast<void>(::operator new(1000));
  } catch (const std::bad_alloc&) {
    return count;
  }
}

/// In a process of its own, with little memory: what `tried` says.
int with_little_memory(int (*tried)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit little{std::size_t{256} << 20, std::size_t{256} << 20};
    ::_exit(::setrlimit(RLIMIT_AS, &little) == 0 ? tried() : 99);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("small allocations succeed after a large one failed, until the reserve is used, too") {
  CHECK(with_little_memory([] {
          MemoryReserve::begin();
          bool failed = false;
          try {
            ::operator delete(::operator new (std::size_t{1} << 30));
          } catch (const std::bad_alloc&) {
            failed = true;
          }
          if (!failed) return 1;
          return allocate_all() > 1000 ? 0 : 2;
        }) == 0);
}

TEST_CASE("the reserve is set aside again once there is memory") {
  CHECK(with_little_memory([] {
          MemoryReserve::begin();
          std::vector<char*> blocks;
          try {
            for (;;) blocks.push_back(new char[std::size_t{4} << 20]);
          } catch (const std::bad_alloc&) {
          }
          for (const char* block : blocks) delete[] block;
          MemoryReserve::restore();
          // It is there: the next failure is not the last.
          int failures = 0;
          for (int i = 0; i < 2; ++i) try {
              ::operator delete(::operator new (std::size_t{1} << 30));
            } catch (const std::bad_alloc&) {
              ++failures;
            }
          return failures == 2 ? 0 : 1;
        }) == 0);
}

#endif
