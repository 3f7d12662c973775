// prompts show other files once idle time has evaluated them, whole, and no keystroke waits for it.
#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/completion/person.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

#ifdef EFIMD_SANITIZED
constexpr unsigned kHeadSeeds = 2;
#else
constexpr unsigned kHeadSeeds = 6;
#endif

/// What a keystroke may evaluate at the most: a near view.
constexpr int kNearTokens = 110;
}  // namespace

TEST_CASE("A-13: a head is asked for once a text, and shown from idle time's next anchor on") {
  test::Person person(200);
  person.ask();
  person.rest();
  REQUIRE(person.questions.size() == 1);
  CHECK(person.questions[0].home.path == "/p/a.c");
  person.show("int area(int);\n");
  person.type(" ");
  Receipt receipt = person.ask();
  CHECK(receipt.head_files == 0);
  CHECK(receipt.view == "full");
  CHECK(receipt.evaluated_tokens <= 3);
  person.rest();
  person.type(" ");
  receipt = person.ask();
  CHECK(receipt.head_files == 1);
  CHECK(receipt.head_tokens > 0);
  CHECK(receipt.evaluated_tokens <= 3);
  CHECK(person.seen.head.find("int area(int);\n") != std::string::npos);
  CHECK(receipt.shown == 1);
}

TEST_CASE("A-13: what was answered at a place is asked again once a head is there") {
  test::Person person(200);
  person.ask();
  person.rest();
  person.type(" ");
  REQUIRE(person.ask().view == "full");
  CHECK(person.ask().source == "remembered");
  person.show("int area(int);\n");
  CHECK(person.ask().source == "remembered");  // until idle time has evaluated it
  person.rest();
  const Receipt receipt = person.ask();
  CHECK(receipt.source == "engine");
  CHECK(receipt.head_files == 1);
  CHECK(person.ask().source == "remembered");
}

TEST_CASE("A-13: files with equal heads share its pages") {
  const auto evaluated_for_b = [](bool shared) {
    test::Person person(200);
    std::string declarations;
    for (int i = 0; i < 60; ++i) declarations += "int declared_" + std::to_string(i) + "(int);\n";
    if (shared) {
      person.ask();
      person.show(declarations);
      person.rest();
    }
    person.ask("file:///p/b.c");
    person.rest();
    person.show(declarations, "file:///p/b.c");
    const int before = person.script->evaluated;
    person.rest();
    person.type(" ", "file:///p/b.c");
    CHECK(person.ask("file:///p/b.c").head_files == 1);
    return person.script->evaluated - before;
  };
  const int alone = evaluated_for_b(false), shared = evaluated_for_b(true);
  CAPTURE(alone, shared);
  CHECK(shared < alone - 300);
}

TEST_CASE("A-13: an empty head, and one for a closed document, change nothing") {
  test::Person person(100);
  person.ask();
  person.rest();
  person.show("");
  person.type(" ");
  CHECK(person.ask().evaluated_tokens <= 3);
  person.worker.close({1, "file:///p/a.c"});
  person.show("int f();\n");
  CHECK(person.questions.back().snapshot == nullptr);
}

TEST_CASE("A-13: a file that is opened again gets its head before its first request") {
  test::Person person(200);
  person.ask();
  person.rest();
  person.show("int area(int);\n");
  person.rest();
  person.worker.close({1, "file:///p/a.c"});
  person.text_a = text::Document(person.text_a.snapshot()->bytes());
  OpenedDocument opened{{1, "file:///p/a.c"}, person.text_a.snapshot(), false, {"p", "a.c"}};
  opened.home = {"/p", "/p/a.c"};
  person.worker.open(opened);
  CHECK(person.worker.documents().rows().at(0).file.open);
  REQUIRE(person.questions.back().snapshot == person.text_a.snapshot());
  person.show("int area(long);\n");
  person.ask();
  person.rest();
  person.type(" ");
  CHECK(person.ask().head_files == 1);
  CHECK(person.seen.head.find("int area(long);\n") != std::string::npos);
}

TEST_CASE("A-13: whatever changes a head, the next prompts are right and no keystroke waits") {
  const std::vector<std::string> heads = {"", "int area(int);\n", "int area(long);\n",
                                          "struct Shape { int sides; };\nint area(long);\n"};
  for (unsigned seed = 0; seed < kHeadSeeds; ++seed) {
    std::mt19937 random(seed);
    test::Person person(250);
    person.ask();
    person.rest();
    std::string wanted;
    std::vector<std::string> given = {""};
    for (int turn = 0; turn < 40; ++turn) {
      CAPTURE(seed, turn, wanted);
      if (random() % 3 == 0) {
        wanted = heads[random() % heads.size()];
        given.push_back(wanted);
        person.show(wanted);
      }
      person.type("x");
      const Receipt receipt = person.ask();
      // Nobody waits for the head: what a keystroke evaluates is what it would without.
      CHECK(receipt.evaluated_tokens <= kNearTokens);
      // A prompt shows a head that was true at some time, whole.
      bool is_one = receipt.prompt_tokens == 0;
      for (const std::string& each : given)
        is_one |= each.empty() ? receipt.head_files == 0
                               : person.seen.head.find("other.h\n" + each) != std::string::npos;
      CHECK(is_one);
      if (random() % 2 == 0) {
        person.rest();
        person.type("y");
        CHECK(person.ask().head_files == (wanted.empty() ? 0 : 1));
        if (!wanted.empty() && !person.seen.head.empty())
          CHECK(person.seen.head.find("other.h\n" + wanted) != std::string::npos);
      }
    }
  }
}
