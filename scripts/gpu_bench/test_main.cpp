#include <catch2/catch.hpp>
#include <cstring>

/// Runs every test, with --card only those that need one; ends with 1 where one failed.
int main(int argc, char** argv) {
  const bool only_card = argc == 2 && std::strcmp(argv[1], "--card") == 0;
  int failed = 0;
  for (const catch_stand_in::Test& test : catch_stand_in::tests()) {
    if (only_card && std::strstr(test.name, "on a card") == nullptr) continue;
    const int before = catch_stand_in::failures;
    try {
      test.run();
    } catch (const catch_stand_in::Stop&) {
    }
    const bool good = catch_stand_in::failures == before;
    if (!good) ++failed;
    std::cout << (good ? "passed  " : "FAILED  ") << test.name << std::endl;
  }
  return failed == 0 ? 0 : 1;
}
