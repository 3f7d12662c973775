#include "daemon/prompt/planner.h"

#include <catch2/catch.hpp>
#include <random>

#include "base/utf8.h"
#include "tests/prompt/fake_editor.h"

using namespace efimd;
using prompt::AnchorChange;
using test::FakeEditor;

namespace {

constexpr const char* kFile =
    "#include <vector>\n"
    "\n"
    "int sum(const std::vector<int>& values) {\n"
    "  int total = 0;\n"
    "  for (int value : values) {\n"
    "    ^\n"
    "  }\n"
    "  return total;\n"
    "}\n";

std::string long_file(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += "  int value_" + std::to_string(i) + " = " + std::to_string(i * 7) + ";\n";
  return text;
}

}  // namespace

TEST_CASE("the first prompt frames before, after and the line so far") {
  FakeEditor editor(kFile);
  editor.ask();
  CHECK_FALSE(editor.kept());
  CHECK(editor.before() == std::string(kFile).substr(0, std::string(kFile).find("    ^")));
  CHECK(editor.increment() == "    ");
  CHECK(editor.after() == "  }\n  return total;\n}\n");
  const engine::FimTokens& fim = editor.tokenizer().fim();
  const auto& tokens = editor.plan().tokens;
  CHECK(tokens.size() == editor.plan().anchor.before.size() + editor.plan().anchor.after.size() +
                             editor.plan().anchor.increment.size() + 3 +
                             (editor.tokenizer().bos() == engine::kNoToken ? 0 : 1));
  CHECK(std::count(tokens.begin(), tokens.end(), fim.prefix) == 1);
  CHECK(std::count(tokens.begin(), tokens.end(), fim.suffix) == 1);
  CHECK(std::count(tokens.begin(), tokens.end(), fim.middle) == 1);
}

TEST_CASE("A-1: an anchor survives typing and deleting behind it, for a few tokens each") {
  FakeEditor editor(kFile);
  editor.ask();
  for (const char c : std::string("total += value * 2")) {
    editor.type(std::string(1, c));
    CHECK(editor.ask() <= 3);
    CHECK(editor.kept());
  }
  for (int i = 0; i < 9; ++i) {
    editor.backspace();
    CHECK(editor.ask() <= 3);
    CHECK(editor.kept());
  }
  CHECK(editor.increment() == "    total += ");
}

TEST_CASE("A-1: Enter and the indent behind it append") {
  FakeEditor editor(kFile);
  editor.type("total += value;");
  editor.ask();
  editor.type("\n    ");
  CHECK(editor.ask() <= 4);
  CHECK(editor.kept());
  CHECK(editor.after() == "  }\n  return total;\n}\n");
}

TEST_CASE("A-7: accepted text keeps the ids that were generated and costs nothing") {
  FakeEditor editor(kFile);
  editor.ask();
  editor.generate({"t", "o", "t", "a", "l", ";"});  // not what the tokenizer would choose
  editor.type("total;");
  CHECK(editor.ask() == 0);
  CHECK(editor.increment() == "    total;");
  CHECK(editor.plan().anchor.increment.back().generated);
  editor.type("\n");
  CHECK(editor.ask() <= 1);
}

TEST_CASE("A-7: typing what was offered adopts it token by token") {
  FakeEditor editor(kFile);
  editor.ask();
  editor.generate({"return", " total"});
  for (const char c : std::string("return")) {
    editor.type(std::string(1, c));
    editor.ask();
  }
  CHECK(editor.plan().anchor.increment.back().generated);
  CHECK(editor.increment() == "    return");
}

TEST_CASE("A-7: text that differs from the offer drops it") {
  FakeEditor editor(kFile);
  editor.ask();
  editor.generate({"return"});
  editor.type("break;");
  editor.ask();
  CHECK(editor.increment() == "    break;");
  for (const auto& token : editor.plan().anchor.increment) CHECK_FALSE(token.generated);
}

TEST_CASE("A-3: auto-closed brackets are the tail, outside the prompt") {
  FakeEditor editor("int main() {\n  call^\n}\n");
  editor.ask();
  editor.type("(");
  editor.insert_at(editor.cursor(), ")");
  CHECK(editor.ask() <= 3);
  CHECK(editor.kept());
  CHECK(editor.increment() == "  call(");
  CHECK(editor.tail() == ")\n");
  CHECK(editor.after() == "}\n");
  editor.type("1");
  CHECK(editor.ask() <= 3);
  CHECK(editor.increment() + editor.tail() == "  call(1)\n");
}

TEST_CASE("A-3: after begins at the cursor when the line goes on with more than closers") {
  FakeEditor editor("x = f(^a, b)\ny = 2\n");
  editor.ask();
  CHECK(editor.after() == "a, b)\ny = 2\n");
  CHECK(editor.tail().empty());
}

TEST_CASE("A-3: a tail of more than closers and blanks asks for a new anchor") {
  FakeEditor editor(kFile);
  editor.type("total += value;");
  editor.ask();
  editor.move(-6);
  editor.ask();
  CHECK(editor.change() == AnchorChange::kTail);
  CHECK(editor.after().substr(0, 6) == "value;");
}

TEST_CASE("a jump makes a new anchor that reuses the common prefix") {
  FakeEditor editor(long_file(40) + "^");
  editor.ask();
  editor.jump_to("int value_30 ");
  const int evaluated = editor.ask();
  CHECK(editor.change() == AnchorChange::kJump);
  const auto& anchor = editor.plan().anchor;
  CHECK(evaluated <= static_cast<int>(anchor.after.size() + anchor.increment.size()) + 2);
}

TEST_CASE("an edit far above makes a new anchor that reuses the tokens in front of it") {
  FakeEditor editor(long_file(40) + "^");
  editor.ask();
  const std::size_t at = editor.text().find("  int value_20 ");
  editor.insert_at(at, "  // note\n");
  const int evaluated = editor.ask();
  CHECK(editor.change() == AnchorChange::kEditOutside);
  CHECK(evaluated < static_cast<int>(editor.plan().tokens.size()) * 6 / 10);
  CHECK(editor.before() == editor.text());
}

TEST_CASE("an edit outside the window costs nothing") {
  FakeEditor editor(long_file(300) + "^\n" + long_file(300), 256);
  editor.ask();
  editor.insert_at(0, "// note\n");
  CHECK(editor.ask() == 0);
  CHECK(editor.kept());
}

TEST_CASE("windows are budgets that no prompt passes") {
  for (const int budget : {64, 256, 1000}) {
    FakeEditor editor(long_file(200) + "  ^\n" + long_file(200), budget);
    editor.ask();
    const prompt::Windows& windows = editor.windows();
    CHECK(static_cast<int>(editor.plan().anchor.before.size()) <= windows.before_max);
    CHECK(static_cast<int>(editor.plan().anchor.after.size()) <= windows.after_max);
    CHECK(static_cast<int>(editor.plan().tokens.size()) <= budget);
    CHECK(editor.before().substr(0, 2) == "  ");  // whole lines
    CHECK(editor.after().back() == '\n');
  }
}

TEST_CASE("A-4: the window's begin stays while the cursor moves inside it") {
  FakeEditor editor(long_file(200) + "^\n" + long_file(20), 1024);
  editor.ask();
  const std::size_t begin = editor.plan().anchor.window_begin;
  REQUIRE(begin > 0);
  editor.jump_to("int value_190 ");
  editor.ask();
  CHECK(editor.plan().anchor.window_begin == begin);
}

TEST_CASE("an increment past its window asks for a new anchor") {
  FakeEditor editor("^\nend\n", 128);
  editor.ask();
  bool replaced = false;
  for (int i = 0; i < 120; ++i) {
    editor.type("q;\n");
    editor.ask();
    replaced = replaced || editor.change() == AnchorChange::kHoleTooLong;
    CHECK(static_cast<int>(editor.plan().tokens.size()) <= 128);
  }
  CHECK(replaced);
}

TEST_CASE("A-2: a very long line is cut in front of a word near the cursor") {
  FakeEditor editor("x = [" + std::string(20000, '1') + ", some_name^]\n", 256);
  editor.ask();
  CHECK(editor.increment() == "some_name");
  CHECK(static_cast<int>(editor.plan().tokens.size()) <= 256);
}

TEST_CASE("empty documents and cursors at both ends make prompts") {
  for (const char* source : {"^", "^\n", "\n^", "^x", "x^"}) {
    FakeEditor editor(source);
    editor.ask();
    CHECK(editor.plan().tokens.size() >= 3);
    CHECK(editor.before() + editor.increment() + editor.tail() + editor.after() == editor.text());
  }
}

TEST_CASE("whatever is edited, the prompt and the tail spell the text around the cursor") {
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {"a", "return", "\n",       "    ", "(",
                                           ")", "\u20ac", "x = 1;\n", ";",    "}"};
  for (int round = 0; round < 40; ++round) {
    FakeEditor editor(kFile, 400);
    for (int step = 0; step < 80; ++step) {
      const auto pick = [&](std::size_t n) { return random() % n; };
      switch (pick(6)) {
        case 0:
        case 1:
          editor.type(pieces[pick(pieces.size())]);
          break;
        case 2:
          if (editor.cursor() > 0 && !utf8::is_continuation(editor.text()[editor.cursor() - 1]))
            editor.backspace();
          break;
        case 3:
          editor.insert_at(pick(2) == 0 ? 0 : editor.text().size(), pieces[pick(2)]);
          break;
        case 4:
          editor.jump_to(pick(2) == 0 ? "return" : "\n");
          if (editor.cursor() > editor.text().size())
            editor.move(static_cast<std::ptrdiff_t>(editor.text().size() - editor.cursor()));
          break;
        default:
          if (step > 0 && pick(2) == 0) editor.generate({"return", ";", "\n"});
          break;
      }
      editor.ask();
      const auto& plan = editor.plan();
      const std::string around =
          editor.before() + editor.increment() + editor.tail() + editor.after();
      REQUIRE(around == editor.text().substr(plan.anchor.window_begin, around.size()));
      REQUIRE(plan.anchor.window_begin + around.size() == plan.anchor.window_end);
      REQUIRE(static_cast<int>(plan.tokens.size()) <= 400);
    }
  }
}

TEST_CASE("a model without PSM order is refused with what to do") {
  const test::ScriptedTokenizer tokenizer({.order = engine::FimOrder::kNone});
  const Result<void> able = prompt::can_fill_in(tokenizer);
  REQUIRE_FALSE(able);
  CHECK(able.error().fault == Fault::kUnsupported);
  CHECK_FALSE(able.error().remedy.empty());
}

TEST_CASE("a model that reads the text behind the hole first gets it first") {
  const test::ScriptedTokenizer tokenizer({.order = engine::FimOrder::kSpm});
  const text::Document document("int a = \nint b;\n");
  prompt::Spine spine(tokenizer);
  const auto windows = prompt::Windows::of(100, 100);
  const prompt::Plan plan =
      prompt::anchored(prompt::View::kFull, *document.snapshot(), 8, spine, tokenizer, windows);
  const engine::FimTokens& fim = tokenizer.fim();
  std::string spelled;
  for (const engine::TokenId token : plan.tokens) {
    if (token == fim.suffix) spelled += "<SUF>";
    if (token == fim.prefix) spelled += "<PRE>";
    if (token == fim.middle) spelled += "<MID>";
    spelled += tokenizer.bytes(token);
  }
  CHECK(spelled == "<SUF>int b;\n<PRE><MID>int a = ");
  CHECK(prompt::spine_prompt(spine, tokenizer).empty());
}

TEST_CASE("A-5: every full anchor's before is a leading part of the spine") {
  FakeEditor editor(long_file(60) + "^\n" + long_file(60), 2048);
  editor.ask();
  for (const char* place : {"value_3 ", "value_40 ", "value_17 ", "value_59 "}) {
    editor.jump_to(place);
    editor.type("x");
    editor.ask();
    const auto& before = editor.plan().anchor.before;
    const auto spine = editor.spine().tokens();
    REQUIRE(before.size() <= spine.size());
    CHECK(std::equal(before.begin(), before.end(), spine.begin()));
    CHECK(editor.tokenizer().decode({spine.begin(), spine.end()}) ==
          editor.text().substr(editor.spine().begin(),
                               editor.spine().end() - editor.spine().begin()));
  }
}

TEST_CASE("A-10: poorer views show less, and all of them the cursor's line") {
  FakeEditor editor(long_file(200) + "  return ^\n" + long_file(200), 2048);
  const prompt::Plan full = editor.look(prompt::View::kFull);
  const prompt::Plan short_after = editor.look(prompt::View::kShortAfter);
  CHECK(short_after.anchor.before == full.anchor.before);
  CHECK(short_after.anchor.after.size() <= 64);
  CHECK(short_after.anchor.after.size() > 32);
  FakeEditor slow(long_file(200) + "  return ^\n" + long_file(200), 2048, 96);
  const prompt::Plan near = slow.look(prompt::View::kNear);
  CHECK(near.tokens.size() <= 96 + near.anchor.increment.size() + 4);
  CHECK(near.tokens.size() > 64);
  CHECK(slow.tokenizer().decode(near.anchor.before).substr(0, 2) == "  ");
}

TEST_CASE("A-1: an anchor that an undo brings back is good again") {
  FakeEditor editor(long_file(20) + "^\n" + long_file(20));
  editor.ask();
  editor.type("x");
  editor.ask();
  prompt::Anchor anchor = editor.plan().anchor;
  const std::size_t at = editor.text().find("  int value_5 ");
  editor.insert_at(at, "// note\n");
  prompt::follow(anchor, editor.snapshot(), editor.tokenizer());
  CHECK(anchor.state == prompt::Anchor::State::kStale);
  editor.replace(at, at + 8, "");
  prompt::follow(anchor, editor.snapshot(), editor.tokenizer());
  CHECK(anchor.state == prompt::Anchor::State::kGood);
  CHECK(anchor.cut == editor.plan().anchor.cut);
}
