#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

using catch_stand_in::Test;

bool passes(const Test& test) {
  const int before = catch_stand_in::failures;
  try {
    test.run();
  } catch (const catch_stand_in::Stop&) {
  }
  return catch_stand_in::failures == before;
}

/// In a process of its own: what a kernel does to the card's context is gone with it.
bool passes_apart(const Test& test) {
  std::cout.flush();
  const pid_t child = ::fork();
  if (child == 0) {
    const bool good = passes(test);
    std::cout.flush();
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status)) std::cout << "ended by signal " << WTERMSIG(status) << "\n";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

/// Runs every test. --card: only those that need one. --without TEXT (any number of times): none
/// whose name has the text. --apart: each in a process of its own. Ends with 1 where one failed.
int main(int argc, char** argv) {
  bool only_card = false, apart = false;
  std::vector<std::string> without;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--card") == 0) {
      only_card = true;
    } else if (std::strcmp(argv[i], "--apart") == 0) {
      apart = true;
    } else if (std::strcmp(argv[i], "--without") == 0 && i + 1 < argc) {
      without.emplace_back(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: cuda_test [--card] [--apart] [--without TEXT]...\n");
      return 2;
    }
  }
  int failed = 0;
  for (const Test& test : catch_stand_in::tests()) {
    if (only_card && std::strstr(test.name, "on a card") == nullptr) continue;
    const auto named = [&](const std::string& text) {
      return std::strstr(test.name, text.c_str()) != nullptr;
    };
    if (std::ranges::any_of(without, named)) continue;
    const bool good = apart ? passes_apart(test) : passes(test);
    if (!good) ++failed;
    std::cout << (good ? "passed  " : "FAILED  ") << test.name << std::endl;
  }
  return failed == 0 ? 0 : 1;
}
