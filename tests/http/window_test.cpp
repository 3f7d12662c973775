#include "net/http/window.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

using namespace efimd::http;

namespace {

/// Numbered lines, each of its own.
std::string lines(int begin, int end) {
  std::string text;
  for (int line = begin; line < end; ++line) text += "line " + std::to_string(line) + ";\n";
  return text;
}

Window window(const std::string& before, const std::string& after, bool above, bool below) {
  return {before + after, before.size(), above, below};
}

/// The known text after the window was laid over it, with the cursor as "^".
std::string laid(const std::string& known, const Window& window) {
  const Laid laid = lay_over(known, window);
  std::string text = edited(known, laid.edits);
  REQUIRE(laid.cursor <= text.size());
  return text.insert(laid.cursor, "^");
}

}  // namespace

TEST_CASE("a typed character is one insertion before the cursor") {
  const Laid typed = lay_over("aaa\nb\n", window("aaaa", "\nb\n", false, false));
  CHECK(typed.edits == std::vector<Edit>{{3, 3, "a"}});
  CHECK(typed.cursor == 4);
  // Of equal characters it is the one at the cursor.
  const Laid inside = lay_over("aaa", window("aa", "aa", false, false));
  CHECK(inside.edits == std::vector<Edit>{{1, 1, "a"}});
}

TEST_CASE("deleting, replacing and pairs that an editor closes are one edit each") {
  CHECK(lay_over("abc\n", window("a", "c\n", false, false)).edits == std::vector<Edit>{{1, 2, ""}});
  CHECK(lay_over("f\n", window("f(", ")\n", false, false)).edits ==
        std::vector<Edit>{{1, 1, "()"}});
  CHECK(laid("one\ntwo\n", window("one\nTW", "o\n", false, false)) == "one\nTW^o\n");
}

TEST_CASE("a window that moved down by a line deletes nothing above it") {
  const std::string known = lines(0, 100);
  const Window moved = window(lines(1, 50) + "x", "\n" + lines(50, 101), true, true);
  CHECK(laid(known, moved) == lines(0, 50) + "x^\n" + lines(50, 100));
}

TEST_CASE("new lines at the end of a cut window wait until they are many") {
  const std::string known = lines(0, 100);
  const auto below = [&](int end) { return window(lines(10, 50), lines(50, end), true, true); };
  CHECK(lay_over(known, below(100 + static_cast<int>(kGrowthLines) - 1)).edits.empty());
  const Laid grown = lay_over(known, below(100 + static_cast<int>(kGrowthLines)));
  CHECK(edited(known, grown.edits) == lines(0, 100 + static_cast<int>(kGrowthLines)));
  const Window up = window(lines(20, 80), lines(80, 90), true, true);
  const std::string far_down = lines(60, 200);
  CHECK(edited(far_down, lay_over(far_down, up).edits) == lines(20, 200));
}

TEST_CASE("a window that shows a whole file takes away what it does not show") {
  CHECK(laid(lines(0, 20), window(lines(5, 10), lines(10, 15), false, false)) ==
        lines(5, 10) + "^" + lines(10, 15));
}

TEST_CASE("a window may begin and end inside a line") {
  const std::string known = lines(0, 40);
  const std::string cut = lines(10, 30).substr(3);
  const Window moved{cut.substr(0, cut.size() - 4), 60, true, true};
  const Laid laid_over = lay_over(known, moved);
  CHECK(laid_over.edits.empty());
  CHECK(known.substr(laid_over.cursor, 20) == moved.text.substr(60, 20));
}

TEST_CASE("a change elsewhere in the window is an edit of its own") {
  const std::string known = lines(0, 60);
  std::string now = known;
  now.replace(now.find("line 3;"), 7, "LINE 3;");
  const std::size_t cursor = now.find("line 40;") + 4;
  now.insert(cursor, "x");
  const Laid laid_over = lay_over(known, {now, cursor + 1, false, false});
  REQUIRE(laid_over.edits.size() == 2);
  CHECK(laid_over.edits[0].text == "LINE");
  CHECK(laid_over.edits[1].text == "x");
  CHECK(edited(known, laid_over.edits) == now);
}

TEST_CASE("edits keep characters and line ends whole") {
  // The first byte of both letters is the same.
  const Laid letters = lay_over("é\n", window("è", "\n", false, false));
  CHECK(letters.edits == std::vector<Edit>{{0, 2, "è"}});
  const Laid ends = lay_over("a\r\nb", window("a", "\nb", false, false));
  CHECK(ends.edits == std::vector<Edit>{{1, 3, "\n"}});
}

TEST_CASE("another file is not alike, and a window with little in it takes no file over") {
  CHECK(lay_over(lines(0, 100), window(lines(500, 550), "", false, false)).likeness < 0.2);
  CHECK(lay_over(lines(0, 2000), window("\n", "", false, false)).likeness == 0);
  CHECK(lay_over("", window("", "", false, false)).likeness == 1);
  CHECK(lay_over(lines(0, 100), window(lines(20, 50) + "x", lines(50, 80), true, true)).likeness >
        0.9);
}

TEST_CASE("a run is followed once, however often its lines break off") {
  // Paragraphs: every other line is frequent, so each of the others could find the whole run.
  constexpr std::size_t kParagraphs = 2000;
  std::string known;
  for (std::size_t line = 0; line < kParagraphs; ++line)
    known += "paragraph " + std::to_string(line) + "\n\n";
  const std::size_t cursor = known.find("paragraph 1000") + 9;
  std::string typed = known;
  typed.insert(cursor, "s");
  const Laid laid_over = lay_over(known, {typed, cursor + 1, false, false});
  CHECK(laid_over.edits == std::vector<Edit>{{cursor, cursor, "s"}});
  CHECK(laid_over.compared < 10 * kParagraphs);
}

TEST_CASE("a long text with edits in every third line is not gone through for each run") {
  constexpr int kLines = 60'000;
  std::string now;
  for (int line = 0; line < kLines; ++line)
    now += line % 3 == 0 ? "other " + std::to_string(line) + "\n" : lines(line, line + 1);
  const std::string known = lines(0, kLines);
  const Laid laid_over = lay_over(known, {now, now.size(), false, false});
  CHECK(edited(known, laid_over.edits) == now);
  CHECK(laid_over.compared < 12 * std::size_t{kLines});
}

TEST_CASE("whatever was edited, the window's text is in the new text, with its cursor") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) {
    return std::uniform_int_distribution<std::size_t>(0, end)(random);
  };
  for (int round = 0; round < 300; ++round) {
    std::string known;
    for (std::size_t line = below(40); line > 0; --line)
      known += std::string("a}é\r").substr(0, below(2)) + std::to_string(below(6)) + "\n";
    std::string now = known;
    for (std::size_t edit = below(3); edit > 0; --edit) {
      const std::size_t at = below(now.size());
      now.replace(at, below(std::min<std::size_t>(9, now.size() - at)), edit == 1 ? "x\ny" : "z");
    }
    const Window whole{now, below(now.size()), false, false};
    const Laid exact = lay_over(known, whole);
    CAPTURE(known, now);
    CHECK(edited(known, exact.edits) == now);
    CHECK(exact.cursor == whole.cursor);
    Window part = whole;
    part.cut_above = part.cut_below = true;
    const Laid around = lay_over(known, part);
    const std::string text = edited(known, around.edits);
    REQUIRE(around.cursor <= text.size());
    // The cursor's line is always the window's (W-4).
    const auto line_at = [](const std::string& of, std::size_t at) {
      const std::size_t begin = at == 0 ? 0 : of.rfind('\n', at - 1) + 1;
      return of.substr(begin, at - begin);
    };
    CHECK(line_at(text, around.cursor) == line_at(now, part.cursor));
  }
}
