#include "daemon/recall/index.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <random>
#include <span>
#include <string>

#include "tests/recall/offers.h"

using namespace efimd;
using namespace efimd::recall;

namespace {

text::SnapshotPtr snapshot(const std::string& text) { return text::Document(text).snapshot(); }

/// Lines of code-like text; the same seed gives the same ones.
std::string code(std::size_t lines, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (std::size_t line = 0; line < lines; ++line) {
    text += std::string(random() % 3 * 2, ' ');
    for (std::size_t words = 3 + random() % 4; words > 0; --words)
      text.append("name")
          .append(std::to_string(random() % 300))
          .append(random() % 2 == 0 ? "(" : ", ");
    text += ";\n";
  }
  return text;
}

}  // namespace

TEST_CASE(
    "the rest of a line that stands in the project is offered, wherever the cursor is in it") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "int total;\ntotal = compute_total(items, count);\n");
  const std::string line = "total = compute_total(items, count);";
  for (std::size_t at = 5; at + 1 < line.size(); ++at) {
    INFO("cursor at " << at);
    CHECK(offers(index, "void f(void) {\n  " + line.substr(0, at) + "^\n}\n", line.substr(at)));
  }
}

TEST_CASE("text of the same file is offered, from above and from below the cursor") {
  const Index index;
  CHECK(offers(index, "call_of(first_thing);\nint x;\ncall_of(fir^\n", "st_thing);"));
  CHECK(offers(index, "call_of(fir^\nint x;\nint y;\ncall_of(first_thing);\n", "st_thing);"));
}

TEST_CASE("the next line is offered where the line above was seen before, with other indentation") {
  Index index;
  index.add_file({"project", "/project/a.c"},
                 "    lock_the_door(house);\n    switch_off_light(house);\n");
  CHECK(offers(index, "void f(void) {\n  lock_the_door(house);\n  ^\n}\n",
               "switch_off_light(house);"));
}

TEST_CASE("what stands below the cursor already is not offered as its line") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "lock_the_door(house);\nswitch_off_light(house);\n");
  CHECK_FALSE(offers(index, "lock_the_door(house);\n^\nswitch_off_light(house);\n",
                     "switch_off_light(house);"));
}

TEST_CASE("a line that stands below is not offered to its half-typed copy, but one of signs is") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "  lock_the_door(house);\n  });\n");
  const std::string rest = "he_door(house);";
  CHECK_FALSE(offers(index, "int x;\n  lock_t^\n  lock_the_door(house);\n", rest));
  CHECK(offers(index, "int x;\n  lock_t^\n  open_the_door(house);\n", rest));
  CHECK(offers(index, "lock_the_door(house);\n  }^\n});\n", ");"));
}

TEST_CASE("a line that stands above is not offered once more, but one of signs is") {
  Index index;
  index.add_file(
      {"project", "/project/a.c"},
      "set_the_color(lamp);\nset_the_color(lamp);\nset_the_color(door);\n  });\n  });\n");
  CHECK_FALSE(offers(index, "  set_the_color(lamp);\n  set_the_^\n", "color(lamp);"));
  CHECK(offers(index, "  set_the_color(lamp);\n  set_the_^\n", "color(door);"));
  CHECK(offers(index, "  set_the_color(wall);\n  set_the_^\n", "color(lamp);"));
  CHECK_FALSE(offers(index, "  set_the_color(lamp);\n  ^\n", "set_the_color(lamp);"));
  CHECK(offers(index, "set_the_color(door);\n  });\n  }^\n", ");"));
  index.add_file({"project", "/project/b.lua"},
                 "do_it()\n    end\n  end\n    end_of_it()\n  end_of_it()\n");
  const Where lua{"project", "/project/c.lua"};
  CHECK(offers(index, "do_it()\n    end\n  ^\n", "end", lua));
  CHECK(offers(index, "do_it()\n    end_of_it()\n  end_^\n", "of_it()", lua));
}

TEST_CASE("the cursor's own line is no evidence for itself") {
  const Index index;
  for (const Candidate& candidate : find(index, "some_long_name = ano^ther_long_name;\n"))
    CHECK(candidate.text.empty());
}

TEST_CASE("the rest of the cursor's line is not doubled") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "call_of(first_thing, second_thing);\n");
  CHECK(offers(index, "call_of(first^);\n", "_thing, second_thing"));
}

TEST_CASE("projects never see each other's text") {
  Index index;
  index.add_file({"one", "/one/a.c"}, "call_of(first_thing);\n");
  index.set_document({"one", "/one/b.c"}, snapshot("other_call_of(second_thing);\n"));
  index.accept({"one", "/one/b.c"}, "third_call(", 11, "third_thing);");
  CHECK(find(index, "call_of(^\n", {"two", "/two/a.c"}).empty());
  CHECK(find(index, "other_call_of(^\n", {"two", "/two/a.c"}).empty());
  CHECK(find(index, "third_call(^\n", {"two", "/two/a.c"}).empty());
  CHECK(offers(index, "other_call_of(^\n", "second_thing);", {"one", "/one/c.c"}));
}

TEST_CASE("text of another language is not offered") {
  Index index;
  index.add_file({"project", "/project/a.py"}, "call_of(first_thing)\n");
  CHECK(find(index, "call_of(fir^\n").empty());
  index.add_file({"project", "/project/a.hpp"}, "call_of(first_thing);\n");
  CHECK(offers(index, "call_of(fir^\n", "st_thing);"));
}

TEST_CASE("inside a line, what was edited in this session is likelier than what was not") {
  const std::string said = "open_it(house);\ncall_of(first_thing);\n";
  const auto chance_of = [&](bool edited, bool saved, const std::string& asked) {
    Index index;
    const Where file{"project", "/project/b.c"};
    index.add_file(file, saved ? said : "int a;\n");
    text::Document document(edited ? "int a;\n" : said);
    index.set_document(file, document.snapshot());
    if (edited) {
      REQUIRE(document.replace(0, 7, said));
      index.set_document(file, document.snapshot());
    }
    const std::vector<Candidate> found = find(index, asked);
    REQUIRE(found.size() == 1);
    CHECK(found[0].evidence.edited == edited);
    return found[0].boundaries.front().chance;
  };
  const std::string inside = "int f() {\n  call_of(^\n", start = "  open_it(house);\n  ^\n";
  for (const bool saved : {false, true}) {
    CAPTURE(saved);
    CHECK(chance_of(true, saved, inside) > chance_of(false, saved, inside));
    CHECK(chance_of(true, saved, start) == chance_of(false, saved, start));
  }
}

TEST_CASE("what a second editor opens, or still has open, counts as edited only if it was") {
  Index index;
  const Where file{"project", "/project/b.c"};
  const std::string said = "call_of(first_thing);\n", asked = "int f() {\n  call_of(^\n";
  const auto is_edited = [&] { return find(index, asked).at(0).evidence.edited; };
  index.set_document(file, snapshot(said));
  index.set_document(file, snapshot(said));
  CHECK_FALSE(is_edited());
  text::Document document("int a;\n");
  REQUIRE(document.replace(0, 7, said));
  index.close_document(file);
  index.set_document(file, document.snapshot());
  CHECK(is_edited());
}

TEST_CASE("an open document stands for its file, and the file counts again when it is closed") {
  Index index;
  const Where file{"project", "/project/a.c"};
  index.add_file(file, "call_of(saved_thing);\n");
  index.set_document(file, snapshot("call_of(edited_thing);\n"));
  CHECK(offers(index, "call_of(^\n", "edited_thing);"));
  CHECK_FALSE(offers(index, "call_of(^\n", "saved_thing);"));
  index.add_file(file, "call_of(newly_saved_thing);\n");
  CHECK_FALSE(offers(index, "call_of(^\n", "newly_saved_thing);"));
  index.close_document(file);
  CHECK(offers(index, "call_of(^\n", "newly_saved_thing);"));
  CHECK_FALSE(offers(index, "call_of(^\n", "edited_thing);"));
}

TEST_CASE(
    "a changed document is found wherever it was changed, and what its file says no more is not") {
  std::mt19937 random(7);
  const Where file{"project", "/project/a.c"};
  // Of four bytes that stand everywhere, as "name" does, a scan reports the last places alone.
  const auto in_number = [](const std::string& line) { return line.find("name", 20) + 6; };
  Index index;
  const std::string saved = code(400, 1);
  index.add_file(file, saved);
  index.add_file({"project", "/project/b.c"}, code(400, 2));
  text::Document document(saved);
  index.set_document(file, document.snapshot());
  for (unsigned round = 0; round < 40; ++round) {
    const text::LineIndex& lines = document.snapshot()->lines();
    const std::size_t line = random() % (lines.line_count() - 4);
    const std::size_t end = lines.start(line + random() % 4);
    REQUIRE(document.replace(lines.start(line), end, code(random() % 3, 100 + round)));
    index.set_document(file, document.snapshot());
    if (round == 20) index.add_file(file, std::string(document.snapshot()->bytes()) + "int x;\n");
    const text::Snapshot& now = *document.snapshot();
    for (std::size_t asked = 0; asked < now.lines().line_count(); ++asked) {
      const auto distance = static_cast<std::ptrdiff_t>(asked) - static_cast<std::ptrdiff_t>(line);
      if (asked % 20 != 0 && std::abs(distance) > 12) continue;
      const auto content = std::string(now.line(asked));
      if (content.size() < 40) continue;
      INFO("round " << round << ", line " << asked << ": " << content);
      const std::size_t cut = in_number(content);
      CHECK(offers(index, "void f() {\n" + content.substr(0, cut) + "^\n", content.substr(cut)));
    }
    const text::Snapshot before = *text::Document(saved).snapshot();
    for (std::size_t asked = 0; asked < before.lines().line_count(); ++asked) {
      const auto content = std::string(before.line(asked));
      if (content.size() < 40 || now.bytes().find(content) != std::string_view::npos) continue;
      INFO("round " << round << ", removed line " << asked << ": " << content);
      const std::size_t cut = in_number(content);
      for (const Candidate& found : find(index, "void f() {\n" + content.substr(0, cut) + "^\n"))
        if (found.text == content.substr(cut)) CHECK(found.source == Source::kDeleted);
    }
  }
}

TEST_CASE("a match in a changed document agrees with what it says before, not with its file") {
  const std::string same = "int " + std::string(100, 'a') + ";\ncall_of(first_thing);\n";
  const Where file{"project", "/project/a.c"};
  const auto agreed = [&](const std::string& opened) {
    Index index;
    index.add_file(file, "int before;\n" + same);
    index.set_document(file, snapshot(opened + same));
    const auto found = find(index, "int other;\nint " + std::string(100, 'a') + ";\ncall_of(^\n");
    REQUIRE(found.size() == 1);
    CHECK(found[0].text == "first_thing);");
    CHECK(found[0].source == (opened == "int before;\n" ? Source::kProject : Source::kOpenFile));
    return found[0].evidence.match_bytes;
  };
  CHECK(agreed("int other;\n") == agreed("int before;\n") + std::string("int other").size());
}

TEST_CASE("a document whose file is gone is searched as a whole") {
  Index index;
  const Where file{"project", "/project/a.c"};
  const std::string said = "call_of(first_thing);\n", far = code(100, 3);
  index.add_file(file, said + far);
  index.set_document(file, snapshot(said + far + "int end;\n"));
  REQUIRE(offers(index, "call_of(^\n", "first_thing);"));
  index.remove_file(file);
  CHECK(offers(index, "call_of(^\n", "first_thing);"));
  index.add_file(file, far);
  CHECK(offers(index, "call_of(^\n", "first_thing);"));
}

TEST_CASE("a file that is added again replaces what it was") {
  Index index;
  const Where file{"project", "/project/a.c"};
  index.add_file(file, "call_of(old_thing);\n");
  index.add_file(file, "call_of(new_thing);\n");
  CHECK(index.usage().files == 1);
  CHECK(offers(index, "call_of(^\n", "new_thing);"));
  CHECK_FALSE(offers(index, "call_of(^\n", "old_thing);"));
  index.remove_file(file);
  CHECK(index.usage().files == 0);
  CHECK(find(index, "call_of(^\n").empty());
}

TEST_CASE("a forgotten file leaves nothing behind") {
  Index index;
  const Where file{"project", "/project/a.c"};
  index.add_file(file, "call_of(saved_thing);\n");
  text::Document document("call_of(deleted_thing);\ncall_of(edited_thing);\n");
  index.set_document(file, document.snapshot());
  REQUIRE(document.replace(0, 24, ""));
  index.set_document(file, document.snapshot());
  index.accept(file, document.snapshot()->bytes(), 8, "edited_thing);");
  REQUIRE_FALSE(find(index, "call_of(^\n").empty());
  index.forget(file);
  CHECK(find(index, "call_of(^\n").empty());
  CHECK(index.usage().text_bytes == 0);
}

TEST_CASE("a text that many matches agree on comes before one of a single match") {
  Index index;
  for (const char* name : {"a", "b", "c", "d"})
    index.add_file({"project", std::string("/project/") + name + ".c"}, "call_of(common_thing);\n");
  index.add_file({"project", "/project/e.c"}, "call_of(rare_thing);\n");
  const auto found = find(index, "call_of(^\n");
  REQUIRE(found.size() == 2);
  CHECK(found[0].text == "common_thing);");
  CHECK(found[0].evidence.votes == 4);
  CHECK(found[0].evidence.sources == 4);
  CHECK(found[1].text == "rare_thing);");
  CHECK(found[0].chance >= found[1].chance);
}

TEST_CASE("chances fall along a text, and its boundaries end with it") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "call_of(common_thing, first.part, 1);\n");
  index.add_file({"project", "/project/b.c"}, "call_of(common_thing, second.part, 2);\n");
  for (const Candidate& candidate : find(index, "call_of(^\n")) {
    REQUIRE_FALSE(candidate.boundaries.empty());
    CHECK(candidate.boundaries.back().bytes == candidate.text.size());
    for (std::size_t i = 1; i < candidate.boundaries.size(); ++i) {
      CHECK(candidate.boundaries[i].bytes > candidate.boundaries[i - 1].bytes);
      CHECK(candidate.boundaries[i].chance <= candidate.boundaries[i - 1].chance);
    }
    CHECK(candidate.shown <= candidate.text.size());
  }
}

TEST_CASE("nothing is shown behind a finished line that ended there elsewhere, too") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "call_of(thing);\ncall_of(thing);\nint x;\n");
  for (const Candidate& candidate : find(index, "int y;\ncall_of(thing);^\n"))
    CHECK(candidate.shown == 0);
}

TEST_CASE("many files that were added one by one are all found, but for those removed") {
  Index index;
  const auto name = [](int i) { return "/project/f" + std::to_string(i) + ".c"; };
  for (int i = 0; i < 100; ++i)
    index.add_file({"project", name(i)},
                   "call_number_" + std::to_string(i) + "(thing_" + std::to_string(i) + ");\n");
  for (int i = 0; i < 100; i += 3) index.remove_file({"project", name(i)});
  CHECK(index.usage().files == 66);
  for (int i = 0; i < 100; ++i) {
    INFO("file " << i);
    const std::string number = std::to_string(i);
    CHECK(offers(index, "call_number_" + number + "(^\n", "thing_" + number + ");") ==
          (i % 3 != 0));
  }
}

TEST_CASE("memory is at most three bytes for each byte of text") {
  Index index;
  const std::vector<File> files = {{"/project/a.c", code(20'000, 1)}};
  index.add_files("project", make_batch(files));
  const Usage usage = index.usage();
  REQUIRE(usage.files == 1);
  CHECK(usage.bytes <= 3 * usage.text_bytes);
}

TEST_CASE("past the budget the project used longest ago loses its files first") {
  constexpr std::size_t kBudget = 1'000'000;
  Index index({.budget_bytes = kBudget});
  const auto add = [&](const std::string& project, unsigned seed) {
    const std::vector<File> files = {{"/" + project + "/" + std::to_string(seed) + ".c",
                                      "call_of(" + project + "_thing);\n" + code(4000, seed)}};
    index.add_files(project, make_batch(files));
  };
  add("old", 1);
  add("new", 2);
  REQUIRE(index.usage().files == 2);
  CHECK(offers(index, "call_of(^\n", "old_thing);", {"old", "/old/typed.c"}));
  for (unsigned seed = 3; index.usage().files_dropped == 0 && seed < 20; ++seed) add("new", seed);
  CHECK(index.usage().files_dropped == 1);
  CHECK(index.usage().bytes <= kBudget);
  CHECK_FALSE(offers(index, "call_of(^\n", "old_thing);", {"old", "/old/typed.c"}));
  CHECK(offers(index, "call_of(^\n", "new_thing);", {"new", "/new/typed.c"}));
}

TEST_CASE("a draft goes on over lines") {
  Index index;
  index.add_file({"project", "/project/a.c"}, "open_the_file(name);\nread_it();\nclose_it();\n");
  CHECK(index.draft({kTyped, "open_the_file(", 14}, 100).text ==
        "name);\nread_it();\nclose_it();\n");
  CHECK(index.draft({kTyped, "open_the_file(", 14}, 8).text == "name);\nr");
  CHECK(index.draft({kTyped, "nothing_known(", 14}, 100).text.empty());
}

TEST_CASE("any bytes can be asked about") {
  std::mt19937 random(1);
  Index index;
  index.add_file({"project", "/project/a.c"}, code(200, 1));
  for (int round = 0; round < 400; ++round) {
    std::string text(random() % 200, ' ');
    for (char& c : text) c = static_cast<char>("\n \t\r(ab\0\xC3\xA9;"[random() % 11]);
    index.set_document({"project", "/project/b.c"}, snapshot(text));
    for (const Candidate& candidate : index.find({kTyped, text, random() % (text.size() + 3)}))
      CHECK(candidate.text.find('\n') == std::string::npos);
  }
  CHECK(index.find({kTyped, "", 0}).empty());
  CHECK(index.draft({kTyped, "", 7}, 10).text.empty());
}

TEST_CASE("a merge keeps what changed, went or was opened while it was made") {
  Index index;
  const auto name = [](int i) { return "m" + std::to_string(i) + ".cpp"; };
  const auto line = [](int i, const std::string& end) {
    return "call_number_" + std::to_string(i) + "_with(" + end + ");\n";
  };
  constexpr int kFiles = 60;
  for (int i = 0; i < kFiles; ++i)
    index.add_file({"project", name(i)}, line(i, "old" + std::to_string(i)));
  const std::size_t text_bytes = index.usage().text_bytes;
  auto merge = index.merge_wanted();
  REQUIRE(merge);
  CHECK_FALSE(index.merge_wanted());  // until this one is made
  index.add_file({"project", name(0)}, line(0, "new"));
  index.remove_file({"project", name(1)});
  index.set_document({"project", name(2)}, text::Document("empty").snapshot());
  index.take_merged(*merge, merge->made());
  const auto said = [&](int i) {
    const std::string typed = "call_number_" + std::to_string(i) + "_with(";
    return index.draft({kTyped, typed, typed.size()}, 20).text;
  };
  const auto old = [](int i) { return "old" + std::to_string(i) + ");\n"; };
  CHECK(said(0) == "new);\n");
  CHECK(said(1) != old(1));
  CHECK(said(2) != old(2));
  for (int i = 3; i < kFiles; ++i) CHECK(said(i) == old(i));
  CHECK(index.usage().files == kFiles - 1);
  CHECK(index.usage().text_bytes <= text_bytes + 1024);
  while ((merge = index.merge_wanted())) index.take_merged(*merge, merge->made());
  for (int i = 3; i < kFiles; ++i) CHECK(said(i) == old(i));
}

TEST_CASE("a continuation that is too long ends with a whole word, and not as a line ends") {
  std::string line = "insert_row(";
  for (int i = 0; line.size() < 400; ++i) line += "column_" + std::to_string(i) + ", ";
  Index index;
  index.add_file({"project", "/project/other.c"}, line + ");\nfollow();\n");
  const std::vector<Candidate> found = find(index, "insert_^");
  REQUIRE(found.size() == 1);
  CHECK(found[0].text.size() <= kContinuationBytesMax);
  CHECK(line.substr(std::string("insert_").size()).starts_with(found[0].text + ","));
  CHECK(found[0].next.empty());
  CHECK_FALSE(found[0].boundaries.empty());
}
