#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>

/// Runs every test, with --card only those that need one, without those whose name has the text behind --without; ends
/// with 1 where one failed.
int main(int argc, char** argv) {
  bool only_card = false;
  const char* without = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--card") == 0) {
      only_card = true;
    } else if (std::strcmp(argv[i], "--without") == 0 && i + 1 < argc) {
      without = argv[++i];
    } else {
      std::fprintf(stderr, "usage: cuda_test [--card] [--without TEXT]\n");
      return 2;
    }
  }
  int failed = 0;
  for (const catch_stand_in::Test& test : catch_stand_in::tests()) {
    if (only_card && std::strstr(test.name, "on a card") == nullptr) continue;
    if (without != nullptr && std::strstr(test.name, without) != nullptr) continue;
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
