// F-8 and SR-8: what a grammar says of a suggestion's place.
#include "daemon/completion/fit/parses.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "daemon/completion/fit/fit.h"
#include "daemon/completion/fit/stop_rules.h"
#include "daemon/completion/silence.h"
#include "daemon/prompt/places.h"
#include "daemon/recall/batch.h"
#include "daemon/syntax/continuation.h"
#include "tests/completion/harness.h"

using namespace efimd;
using namespace efimd::completion;

namespace {

/// A process's first parse reads the grammar's tables from its file, and sanitizers slow all.
constexpr std::uint64_t kAnyTimeUs = 10'000'000;

struct File {
  std::string name;
  bool has_grammar = true;
};

CursorContext context(const text::Snapshot& snapshot, std::size_t cursor, const File& file) {
  CursorContext place = context_at(snapshot, language_of("", file.name), cursor,
                                   prompt::choose_resume(snapshot, cursor));
  if (file.has_grammar) place.grammar = syntax::grammar_of(file.name);
  place.parse_time_us = kAnyTimeUs;
  return place;
}

/// What is shown of the generated text; "-" and the reason if nothing is.
std::string shown(const File& file, const std::string& source, const std::string& generated) {
  const test::Marked marked = test::marked(source);
  const text::Document document(marked.text);
  const Fitted fitted = fit(generated, context(*document.snapshot(), marked.cursor, file));
  return fitted.text.empty() ? std::string("-").append(fitted.silence) : fitted.text;
}

/// What the block rule keeps of the generated text.
std::string kept(const File& file, const std::string& source, const std::string& generated) {
  const test::Marked marked = test::marked(source);
  const text::Document document(marked.text);
  StopRules rules(StopRule::kBlock, stop_place(context(*document.snapshot(), marked.cursor, file)));
  rules.feed(generated);
  return rules.finish();
}

/// How often the rest of a line of these files is put back where it was, and how often F-8 leaves
/// less of it.
struct Judged {
  int lines = 0, cut = 0;
  std::string where = {};  ///< of the last that was cut
};

Judged judge_lines(const std::string& folder, std::string_view ending) {
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(EFIMD_SOURCE_DIR "/" + folder))
    if (entry.path().extension() == ending) files.push_back(entry.path());
  std::ranges::sort(files);
  Judged judged;
  for (const fs::path& path : files) {
    std::ifstream stream(path);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const text::LineIndex lines(text);
    for (std::size_t line = 0; line < lines.line_count(); line += 5) {
      const std::string_view content = lines.content(text, line);
      const std::size_t first = std::min(content.find_first_not_of(" \t"), content.size());
      // At the line's begin, and inside it.
      const std::size_t at = line % 2 == 0 ? first : first + (content.size() - first) / 2;
      const std::size_t cursor = lines.start(line) + at;
      const std::string rest(content.substr(at));
      const std::string taken = std::string(text).erase(cursor, rest.size());
      const text::Document document(taken);
      const File file{path.filename()};
      const auto with = fit(rest, context(*document.snapshot(), cursor, file));
      const auto without = fit(rest, context(*document.snapshot(), cursor, {file.name, false}));
      judged.lines += without.text.empty() ? 0 : 1;
      if (with.text == without.text) continue;
      ++judged.cut;
      judged.where = path.string() + ":" + std::to_string(line + 1);
    }
  }
  return judged;
}

const std::string kWorse = "-" + std::string(silence::kParsesWorse);
const File kCpp{"a.cpp"}, kC{"a.c"}, kPython{"a.py"}, kGo{"a.go"}, kTs{"a.ts"};

}  // namespace

TEST_CASE("F-8: a suggestion is cut at the last end before a token that cannot stand there") {
  CHECK(shown(kCpp, "void f() {\n  ^\n}\n", "g(a);\n  h(b c);") == "g(a);");
  CHECK(shown(kCpp, "void f() {\n  ^\n}\n", "g(a); h(b c);") == "g(a);");
  CHECK(shown(kPython, "def f(a):\n    ^\n", "b = g(a)\n    return a b.c\n") == "b = g(a)");
  CHECK(shown(kGo, "package p\n\nfunc f() {\n\t^\n}\n", "a := g()\n\tb := := a.b()") == "a := g()");
}

TEST_CASE("F-8: a suggestion that parses worse from its first end on is not shown") {
  CHECK(shown(kCpp, "void f() {\n  int a = ^\n}\n", "b c.d;") == kWorse);
  CHECK(shown(kPython, "def f(a):\n    return ^\n", "a b.c()") == kWorse);
  CHECK(shown(kTs, "const a = ^;\n", "f(1 2)") == kWorse);
}

TEST_CASE("F-8: what is right but unfinished stays") {
  CHECK(shown(kCpp, "void f() {\n  ^\n}\n", "if (a) {\n    g(") != kWorse);
  CHECK(shown(kCpp, "void f() {\n  int a = ^\n  int c;\n}\n", "b +") == "b +");
  CHECK(shown(kPython, "def f(a):\n    ^\n    return b\n", "if a:") == "if a:");
  CHECK(shown(kPython, "def f(a):\n    ^\n", "for b i") == "for b i");
  CHECK(shown(kCpp, "void f() {\n  ^\n}\n", "g();  /* what is") == "g();  /* what is");
  CHECK(shown(kPython, "def f(a):\n    ^\n", "\"\"\"Says what is") != kWorse);
}

TEST_CASE("F-8: a statement that is broken already is judged by what is added") {
  CHECK(shown(kCpp, "void f() {\n  g(a, ^\n  int b;\n}\n", "c);") == "c);");
  CHECK(shown(kCpp, "void f() {\n  a b c d;\n  g(^\n}\n", "h i.j);") == "h i.j);");
}

TEST_CASE("F-8: the rest of the line parses with a suggestion as far as without") {
  CHECK(shown(kCpp, "void f() {\n  int a = g(^) + 1;\n}\n", "b, c") == "b, c");
  CHECK(shown(kCpp, "void f() {\n  int a = g(^) + 1;\n}\n", "b, c +") == "b");
  CHECK(shown(kCpp, "void f() {\n  int a = ^;\n}\n", "b") == "b");
  CHECK(shown(kPython, "a = [b for b ^ c]\n", "in") == "in");
  CHECK(shown(kPython, "a = f(^, c)\n", "b for") == kWorse);
}

TEST_CASE("F-8: what a suggestion covers of the rest of the line belongs to what is without it") {
  CHECK(shown(kPython, "if f(^):\n", "a) and") == "a)");
  CHECK(shown(kPython, "a = [f(^)]\n", "b) if") == "b)");
  CHECK(shown(kCpp, "void f() {\n  g(^);\n}\n", "a) +") == "a)");
  CHECK(shown(kPython, "def f(^):\n", "a, b)") == "a, b)");
  CHECK(shown(kPython, "def f(^):\n", "a) -> int") == "a) -> int");
}

TEST_CASE("F-8: names that may be macros, and what a grammar lacks, are excused in C and C++") {
  CHECK(shown(kC, "^\n", "API_EXPORT int f(int a);") == "API_EXPORT int f(int a);");
  CHECK(shown(kCpp, "void f(int a, ^);\n", "B b = {}") == "B b = {}");
  CHECK(shown(kCpp, "^\n", "#include <a b.h>") == "#include <a b.h>");
  CHECK(shown(kC, "^\n", "api int f g(int a);") == kWorse);
}

TEST_CASE("F-8: nothing changes without a grammar") {
  for (const std::string name : {"a.cpp", "a.py", "a.go", "a.ts", "a.java", "a.rs", "a.c"}) {
    CHECK(shown({name, false}, "x = ^\n", "a b.c() d") == "a b.c() d");
    CHECK(shown({name, false}, "x = f(^)\n", "a b.c() d") == "a b.c() d");
  }
  CHECK(shown({"a.txt"}, "x = ^\n", "a b.c() d") == "a b.c() d");
}

TEST_CASE("F-8: a bracket closes what a large file opened above the window") {
  std::string above = "namespace a {\n\n";
  while (above.size() < 3 * syntax::kWindowBytesMax) above += "void f() {\n  g();\n}\n\n";
  CHECK(shown(kCpp, above + "void f() {\n  ^", "g();\n}\n\n}  // namespace a") ==
        "g();\n}\n\n}  // namespace a");
}

TEST_CASE("F-8: where a window begins inside a string nothing is judged") {
  std::string above = "package p\n\nconst a = `\n";
  while (above.size() < 3 * syntax::kWindowBytesMax) above += "word of text\n";
  CHECK(shown(kGo, above + "`\n\nvar b = ^\n", "c d.e") == "c d.e");
}

TEST_CASE("F-8: it holds for what the model writes") {
  test::Harness harness(test::says("b c.d;"));
  harness.set("void f() {\n  int a = ^\n}\n", "file:///p/a.cpp");
  const Outcome outcome = harness.ask("file:///p/a.cpp");
  CHECK_FALSE(outcome.item);
  CHECK(outcome.receipt.reason == silence::kParsesWorse);
  harness.set("void f() {\n  int a = ^\n}\n", "file:///p/a.unknown");
  CHECK(harness.ask("file:///p/a.unknown").item);
}

TEST_CASE("F-8: it holds for what is recalled") {
  // Text of another kind of file, in which it is right.
  const recall::File other{"/p/other.cpp",
                           "f() {\n  registry.insert key of value;\n}\n"
                           "g() {\n  registry.insert key of value;\n}\n"
                           "h() {\n  registry.insert key of value;\n}\n"};
  test::Harness harness(test::says("(key);"));
  harness.service->change_index([batch = recall::make_batch({&other, 1})](recall::Index& index) {
    index.add_files("/p", batch);
  });
  const auto ask = [&](const std::string& uri) {
    harness.set("void f() {\n  registry.insert^\n}\n", uri);
    Request request = harness.request(uri);
    request.home = {"/p", "/p/a.cpp"};
    return harness.submit(std::move(request)).get().item->text;
  };
  CHECK(ask("file:///p/a.unknown") == " key of value;");
  CHECK(ask("file:///p/a.cpp") == "(key);");
}

TEST_CASE("F-8: what stands in real files is left as it is") {
  for (const auto& [folder, ending] :
       std::vector<std::pair<std::string, std::string>>{{"daemon/completion/answer", ".cpp"},
                                                        {"daemon/completion/fit", ".h"},
                                                        {"editors/vscode/src", ".ts"},
                                                        {"tests/rooms", ".py"}}) {
    const Judged judged = judge_lines(folder, ending);
    INFO(folder << ": " << judged.cut << " of " << judged.lines << ", " << judged.where);
    CHECK(judged.lines > 50);
    CHECK(judged.cut * 200 <= judged.lines);
  }
}

TEST_CASE("SR-8: a block whose statement began further up is kept whole") {
  CHECK(kept(kCpp, "int f(int a,\n      int b) {^", "\n  return a;\n}\nint g();") ==
        "\n  return a;\n}");
  CHECK(kept(kCpp, "int f(int a,\n      ^", "int b) {\n  return a;\n}\nint g();") ==
        "int b) {\n  return a;\n}");
  CHECK(kept(kPython, "def f(a,\n          b):^", "\n    return a\n\nx = 1\n") == "\n    return a");
  CHECK(kept(kCpp, "void f() {\n  if (a &&\n      b) {^", "\n    g();\n  }\n  h();\n") ==
        "\n    g();\n  }");
}

TEST_CASE("SR-8: a block inside a call ends where its own line says") {
  CHECK(kept(kTs, "f(a,\n  () => {^", "\n    g();\n  });\nh();\n") == "\n    g();\n  });");
}

TEST_CASE("SR-8: without a grammar the cursor's line alone counts") {
  CHECK(kept({"a.cpp", false}, "int f(int a,\n      int b) {^", "\n  return a;\n}\n").empty());
}
