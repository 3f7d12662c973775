#include "tests/bench/completion/fill.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/scripted_engine.h"

using namespace efimd;
using namespace efimd::bench;

namespace {

const FillCursor kCursor{"int a;\n", "  ret", "}\n"};

/// What the model was shown for kCursor, and what it wrote.
struct Shown {
  test::ScriptedPrompt prompt;
  Result<Filled> filled;
};
Shown shown(const FillCursor& cursor, FillOptions options, int window_tokens = 4096) {
  const auto script = std::make_shared<test::EngineScript>();
  script->window_tokens = window_tokens;
  script->tokenizer.files.place = engine::FimFiles::Place::kBeforePrefix;
  script->tokenizer.files.before_path = "#";
  script->tokenizer.files.after_path = "\n";
  test::ScriptedPrompt seen;
  script->continuation = [&](const test::ScriptedPrompt& prompt) {
    seen = prompt;
    return std::string("urn a;\n}");
  };
  auto filler = Filler::open(std::make_unique<test::ScriptedEngine>(script));
  REQUIRE(filler);
  auto filled = filler->fill(cursor, options);
  return {seen, std::move(filled)};
}

}  // namespace

TEST_CASE("the increment stands behind the middle token, or with PSM in front of the suffix") {
  const Shown efim = shown(kCursor, {.form = FillForm::kEfim});
  CHECK(efim.prompt.before == "int a;\n");
  CHECK(efim.prompt.increment == "  ret");
  CHECK(efim.prompt.after == "}\n");
  const Shown psm = shown(kCursor, {.form = FillForm::kPsm});
  CHECK(psm.prompt.before == "int a;\n  ret");
  CHECK(psm.prompt.increment.empty());
}

TEST_CASE("a cursor's path stands in front, as the daemon would say it") {
  FillCursor cursor = kCursor;
  CHECK(shown(cursor, {}).prompt.head.empty());
  cursor.file = {"project", "src/a.c"};
  for (const FillForm form : {FillForm::kPsm, FillForm::kEfim, FillForm::kHealed}) {
    const Shown with_path = shown(cursor, {.form = form});
    CHECK(with_path.prompt.head == "#src/a.c\n");
    CHECK(with_path.prompt.after == "}\n");
  }
}

TEST_CASE("an answer ends where it was asked to") {
  const Shown line = shown(kCursor, {.stop = completion::StopRule::kLine});
  REQUIRE(line.filled);
  CHECK(line.filled->text == "urn a;");
  const Shown all = shown(kCursor, {.stop = completion::StopRule::kNone});
  REQUIRE(all.filled);
  CHECK(all.filled->text == "urn a;\n}");
}

TEST_CASE("what finds no room in the window is dropped at before's beginning") {
  FillCursor cursor = kCursor;
  cursor.before = std::string(500, '#') + "\nint a;\n";
  cursor.file.path = "a.c";
  const Shown cut = shown(cursor, {.tokens_max = 32}, 128);
  REQUIRE(cut.filled);
  CHECK(cut.filled->dropped_tokens > 0);
  CHECK(cut.filled->prompt_tokens == 128 - 32);
  CHECK(cut.prompt.before.ends_with("#\nint a;\n"));
}

TEST_CASE("an after that leaves no room is refused") {
  FillCursor cursor = kCursor;
  cursor.after = std::string(500, '#');
  const Shown refused = shown(cursor, {}, 128);
  REQUIRE_FALSE(refused.filled);
  CHECK(refused.filled.error().fault == Fault::kWindowFull);
}

TEST_CASE("cursors are read a line each, and an increment and a file may be left out") {
  const auto cursors = parse_fill_cursors(
      "{\"before\":\"a\",\"increment\":\"b\",\"after\":\"c\",\"path\":\"x/y.c\","
      "\"repository\":\"r\"}\n\n{\"before\":\"d\",\"after\":\"\"}\n");
  REQUIRE(cursors);
  REQUIRE(cursors->size() == 2);
  CHECK((*cursors)[0].increment == "b");
  CHECK((*cursors)[0].file == prompt::FileName{"r", "x/y.c"});
  CHECK((*cursors)[1].before == "d");
  CHECK((*cursors)[1].increment.empty());
  CHECK((*cursors)[1].file == prompt::FileName{});
}

TEST_CASE("a cursor that is none is refused with its line and member") {
  const auto refused = [](const char* line) {
    const auto cursors =
        parse_fill_cursors(std::string("{\"before\":\"\",\"after\":\"\"}\n") + line);
    return cursors ? "" : cursors.error().message();
  };
  CHECK(refused("{\"after\":\"\"}").find("line 2 of the cursors: \"before\"") == 0);
  CHECK(refused("{\"before\":1,\"after\":\"\"}").find("\"before\"") != std::string::npos);
  CHECK(refused("{\"before\":\"\"}").find("\"after\"") != std::string::npos);
  CHECK(refused("{\"before\":\"\",\"after\":\"\",\"increment\":[]}").find("\"increment\"") !=
        std::string::npos);
  CHECK(refused("{\"before\":\"\",\"after\":\"\",\"path\":1}").find("\"path\"") !=
        std::string::npos);
  CHECK(refused("{\"before\":\"\",\"after\":\"\",\"repository\":1}").find("\"repository\"") !=
        std::string::npos);
  CHECK(refused("[]").find("not a JSON object") != std::string::npos);
  CHECK(refused("{").find("line 2") == 0);
}
