// prompts show what was edited in other files once idle time has evaluated it, and no keystroke
// waits for it.
#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/completion/person.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

const std::string kA = "file:///p/a.c";
const std::string kB = "file:///p/b.c";

/// Edits b, then works in a until idle time has nothing left to do.
Receipt edit_b_then_a(test::Person& person, const std::string& typed) {
  person.ask(kB);
  person.type(typed, kB);
  person.ask(kB);
  person.ask(kA);
  person.rest();
  person.type("x", kA);
  return person.ask(kA);
}

}  // namespace

TEST_CASE("A-14: a prompt shows the lines that were edited in another file, behind after") {
  test::Person person(100, true);
  const Receipt receipt = edit_b_then_a(person, " renamed();");
  CHECK(receipt.edit_tokens > 0);
  CHECK(receipt.evaluated_tokens <= 3);
  CHECK(receipt.view == "full");
  const std::size_t edit = person.seen.after.find("b.c\n");
  REQUIRE(edit != std::string::npos);
  CHECK(person.seen.after.find("renamed();", edit) != std::string::npos);
  CHECK(person.seen.before.find("renamed") == std::string::npos);
}

TEST_CASE("A-14: what is edited before a document's first request counts") {
  test::Person person(100, true);
  person.worker.open({.document = {1, kB},
                      .snapshot = person.text_b.snapshot(),
                      .file = {"p", "b.c"},
                      .home = {"/p", "/p/b.c"}});
  person.type(" renamed();", kB);
  person.ask(kB);
  person.ask(kA);
  person.rest();
  person.type("x", kA);
  CHECK(person.ask(kA).edit_tokens > 0);
  CHECK(person.seen.after.find("renamed();") != std::string::npos);
}

TEST_CASE("A-14: without the setting, and of another project, nothing is shown") {
  test::Person off(100);
  CHECK(edit_b_then_a(off, " renamed();").edit_tokens == 0);
  test::Person person(100, true);
  person.projects[kB] = "/q";
  CHECK(edit_b_then_a(person, " renamed();").edit_tokens == 0);
  // A file that recall may not know, such as a secret, has no project and no path.
  person.projects[kB] = "";
  CHECK(edit_b_then_a(person, " again();").edit_tokens == 0);
}

TEST_CASE("A-14: an anchor keeps the edits that it shows while others are made") {
  test::Person person(100, true);
  edit_b_then_a(person, " first();");
  const std::string shown = person.seen.after;
  person.type(" second();", kB);
  person.ask(kB);
  person.type("y", kA);
  CHECK(person.ask(kA).evaluated_tokens <= 3);
  CHECK(person.seen.after == shown);
}

TEST_CASE("A-14: whatever is edited where, no keystroke waits for what others show") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    std::mt19937 random(seed);
    test::Person person(150, true);
    person.ask(kA);
    person.rest();
    for (int turn = 0; turn < 40; ++turn) {
      CAPTURE(seed, turn);
      const std::string& uri = random() % 2 == 0 ? kA : kB;
      person.type(random() % 4 == 0 ? "int z;\n" : "z", uri);
      // A near view, as without edits.
      CHECK(person.ask(uri).evaluated_tokens <= 110);
      if (random() % 3 == 0) person.rest();
    }
  }
}

TEST_CASE("A-14: purging a file forgets the documents whose prompts showed its edits") {
  test::Person person(100, true);
  CHECK(edit_b_then_a(person, " renamed();").edit_tokens > 0);
  REQUIRE(person.worker.documents().find({1, kA}) != nullptr);
  const std::string purged[] = {kB};
  person.worker.forget(purged);
  CHECK(person.worker.documents().find({1, kA}) == nullptr);
  CHECK(person.worker.documents().find({1, kB}) == nullptr);
}
