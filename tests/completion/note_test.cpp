#include "daemon/completion/documents/note.h"

#include <catch2/catch.hpp>

#include "tests/support/scripted_engine.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

constexpr std::string_view kText = "def a():\n    return 1\n\ndef b():\n    return a()\n";

prompt::Anchor anchor_of(const test::ScriptedTokenizer& tokenizer) {
  prompt::Anchor anchor;
  anchor.cut = 23;
  anchor.resume = 32;
  anchor.window_end = kText.size();
  anchor.before = tokenizer.encode(kText.substr(0, 23), engine::Fragment::kTextStart);
  anchor.after = tokenizer.encode(kText.substr(32), engine::Fragment::kInside);
  return anchor;
}

}  // namespace

TEST_CASE("what is noted of a document is read back as it was") {
  Note note{
      12, 50, 3, 40, {{prompt::View::kShortAfter, 0, 1, 2, 3, {4, 5}, {6, ~std::uint64_t{0}}}}};
  note.anchors.push_back(note.anchors.front());
  CHECK(parse_note(note_text(note)) == note);
  CHECK(parse_note(note_text(Note{})) == Note{});
}

TEST_CASE("a note that is no note is none") {
  const std::string good = note_text({1, 4, 2, 3, {NotedAnchor{}}});
  for (std::size_t size = 0; size < good.size(); ++size)
    if (const auto part = parse_note(good.substr(0, size))) CHECK(part->anchors.empty());
  for (std::string bad : {"1 0 0 0\n", "2 0 0 0 0\n", "5 -1 0 0 0\n", "5 0 0 0 0\nnonsense\n",
                          "5 99999999999999999999999 0 0 0\n"})
    CHECK_FALSE(parse_note(bad));
  std::string many = "5 0 0 0 0\n";
  for (std::size_t i = 0; i <= kNotedAnchorsMax; ++i) many += good.substr(good.find('\n') + 1);
  CHECK_FALSE(parse_note(many));
}

TEST_CASE("a note holds no text of its document") {
  const test::ScriptedTokenizer tokenizer;
  const std::string text = note_text({0, 40, 0, 40, {noted(anchor_of(tokenizer))}});
  CHECK(text.find_first_not_of("0123456789abcdef \n") == std::string::npos);
}

TEST_CASE("an anchor comes back where the text is unchanged, and nowhere else") {
  const test::ScriptedTokenizer tokenizer;
  const prompt::Anchor anchor = anchor_of(tokenizer);
  const NotedAnchor note = noted(anchor);
  const auto in = [&](std::string_view text) {
    return anchor_from(note, *text::Document(text).snapshot(), 0, tokenizer);
  };
  const auto same = in(kText);
  REQUIRE(same);
  CHECK(same->before == anchor.before);
  CHECK(same->after == anchor.after);
  CHECK(same->cut == anchor.cut);
  CHECK_FALSE(in(std::string(kText.substr(0, 5)) + "x" + std::string(kText.substr(6))));
  CHECK_FALSE(in(kText.substr(0, 30)));
  CHECK_FALSE(in(""));
  NotedAnchor crossed = note;
  std::swap(crossed.cut, crossed.resume);
  CHECK_FALSE(anchor_from(crossed, *text::Document(kText).snapshot(), 0, tokenizer));
}

TEST_CASE("an anchor whose hole was changed comes back with what is behind it moved") {
  const test::ScriptedTokenizer tokenizer;
  const prompt::Anchor anchor = anchor_of(tokenizer);
  const auto in = [&](const std::string& text) {
    return anchor_from(noted(anchor), *text::Document(text).snapshot(),
                       std::ssize(text) - std::ssize(kText), tokenizer);
  };
  const std::string text(kText);
  for (const std::string& hole :
       {std::string(), std::string("b"), std::string("more than nine bytes")}) {
    const auto moved = in(text.substr(0, 23) + hole + text.substr(32));
    REQUIRE(moved);
    CHECK(moved->cut == 23);
    CHECK(moved->resume == 23 + hole.size());
    CHECK(moved->window_end == text.size() - 9 + hole.size());
    CHECK(moved->after == anchor.after);
  }
  CHECK_FALSE(in("x" + text));                                  // before the cut
  CHECK_FALSE(in(text.substr(0, 40) + "x" + text.substr(40)));  // after the hole
  CHECK_FALSE(in(text.substr(0, 30)));
  CHECK_FALSE(in(""));
}

TEST_CASE("a note names the files that its head shows, or has no head") {
  Note note{1, 4, 2, 3, {NotedAnchor{}}};
  note.path.front = {1, 2, 3};
  note.path.other_files = 1;
  note.path.other_tokens = 2;
  CHECK(parse_note(note_text(note))->path.size() == 0);
  note.files = {"file:///a/shape.h", "file:///a/b.h"};
  const std::string text = note_text(note);
  CHECK(parse_note(text) == note);
  CHECK(shows_any(text, {"file:///a/b.h", "file:///c"}));
  CHECK_FALSE(shows_any(text, {"file:///a/b", "file:///a/shape.hh"}));
  CHECK_FALSE(shows_any(text, {}));
  CHECK_FALSE(parse_note(text.substr(0, text.find("file "))));
  note.files.push_back("file:///a/\nb");
  CHECK(parse_note(note_text(note))->path.size() == 0);
}
