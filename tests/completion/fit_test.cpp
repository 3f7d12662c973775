#include "daemon/completion/fit/fit.h"

#include <catch2/catch.hpp>
#include <string>

#include "daemon/completion/silence.h"
#include "daemon/prompt/places.h"
#include "tests/support/marked.h"

using namespace efimd;
using completion::Fitted;

namespace {

Fitted fit_at(const std::string& source, const std::string& generated,
              std::string_view language = "") {
  const test::Marked place = test::marked(source);
  const text::Document document(place.text);
  const std::size_t tail_end = prompt::choose_resume(*document.snapshot(), place.cursor);
  const auto where = completion::context_at(*document.snapshot(), completion::language_of(language),
                                            place.cursor, tail_end);
  return completion::fit(generated, where);
}

/// The document after accepting what is shown, with `|` where the cursor ends; "-" and the reason
/// when nothing is.
std::string accepted(const std::string& source, const std::string& generated,
                     std::string_view language = "") {
  const test::Marked place = test::marked(source);
  const Fitted fitted = fit_at(source, generated, language);
  if (fitted.text.empty()) return std::string("-").append(fitted.silence);
  return place.text.substr(0, place.cursor) + fitted.text + "|" +
         place.text.substr(fitted.replace_end);
}

std::string silent(std::string_view reason) { return std::string("-").append(reason); }

}  // namespace

TEST_CASE("F-5: auto-closed brackets are covered by the completion that closes them") {
  CHECK(accepted("foo(^)", "a, b)") == "foo(a, b)|");
  CHECK(accepted("foo(^)", "a, b);") == "foo(a, b);|");
  CHECK(accepted("call(^);", "x, y);") == "call(x, y);|");
  CHECK(accepted("call(^);", "x, y)") == "call(x, y)|;");
  CHECK(accepted("call(^);", "x, y") == "call(x, y|);");
  CHECK(accepted("{\"a\": [^]}", "1, 2]}") == "{\"a\": [1, 2]}|");
  CHECK(accepted("{\"a\": [^]}", "1, 2]") == "{\"a\": [1, 2]|}");
  CHECK(accepted("{\"a\": [^]}", "1, 2") == "{\"a\": [1, 2|]}");
  CHECK(accepted("if (f(^))", "x)) {\n  y();\n}") == "if (f(x)) {\n  y();\n}|");
  CHECK(accepted("foo(bar(^)", "x));") == "foo(bar(x));|");
}

TEST_CASE("F-5: brackets that the completion opens itself are its own") {
  CHECK(accepted("foo(^)", "bar(a)") == "foo(bar(a)|)");
  CHECK(accepted("foo(^)", "bar(a), c[0])") == "foo(bar(a), c[0])|");
  CHECK(accepted("foo(^)", "\")\"") == "foo(\")\"|)");
}

TEST_CASE("F-5: a bracket that would be left unbalanced is cut") {
  CHECK(accepted("foo[^]", "1)") == "foo[1|]");
  CHECK(accepted("foo(^)", "a))") == "foo(a)|");
  CHECK(accepted("foo(^)", ")") == silent(completion::silence::kRepeats));
  CHECK(accepted("foo(^);", ");") == silent(completion::silence::kRepeats));
}

TEST_CASE("F-5: blanks of the tail stay in front of its brackets") {
  CHECK(accepted("x = {^ };", "a: 1};") == "x = {a: 1 };|");
  CHECK(accepted("x = {^ };", " a: 1 };") == "x = { a: 1 };|");
}

TEST_CASE("F-5: an auto-closed string ends where the completion ends it") {
  CHECK(accepted("print(\"^\")", "hello\")") == "print(\"hello\")|");
  CHECK(accepted("print(\"^\")", "hello") == "print(\"hello|\")");
  CHECK(accepted("f([\"^\"])", "a\", \"b") == "f([\"a\", \"b|\"])");
  CHECK(accepted("print(\"^\")", "a) (b\")") == "print(\"a) (b\")|");
}

TEST_CASE("F-5: a string's end behind auto-closed brackets is covered, too") {
  CHECK(accepted("puts \"is #{^}\"", "value}\"") == "puts \"is #{value}\"|");
  CHECK(accepted("puts \"is #{^}\"", "value} now\"") == "puts \"is #{value} now\"|");
  CHECK(accepted("puts \"is #{^}\"", "value}") == "puts \"is #{value}|\"");
  CHECK(accepted("puts \"is #{^}\"", "value") == "puts \"is #{value|}\"");
  CHECK(accepted("print(\"is \\(^)\")", "value)\")") == "print(\"is \\(value)\")|");
  CHECK(accepted("print('is ${^}');", "value}');") == "print('is ${value}');|");
  CHECK(accepted("<a href=\"{{ ^ }}\">", "url }}\">") == "<a href=\"{{ url }}\">|");
}

TEST_CASE("F-5: strings between auto-closed brackets are their code's") {
  CHECK(accepted("cd \"$(^)\"", "dirname \"$0\")\"") == "cd \"$(dirname \"$0\")\"|");
  CHECK(accepted("cd \"$(^)\"", "dirname \"$0\"") == "cd \"$(dirname \"$0\"|)\"");
  CHECK(accepted("puts \"#{^}\"", "a[\"b\"]}\"") == "puts \"#{a[\"b\"]}\"|");
  CHECK(accepted("puts \"#{^}\"", "a[\"b\"]") == "puts \"#{a[\"b\"]|}\"");
}

TEST_CASE("F-5: a sign behind the cursor does not come to stand behind a block") {
  CHECK(accepted("def f(^):", "a, b):\n    g(a)\n    return b") ==
        "def f(a, b):\n    g(a)\n    return b|");
  CHECK(accepted("def f(^):", "a,\n      b):\n    return b") ==
        "def f(a,\n      b):\n    return b|");
  CHECK(accepted("  case ^:", "1:\n    g()") == "  case 1:\n    g()|");
  CHECK(accepted("f(^);", "a);\ng(() => {\n  h();\n})") == "f(a);\ng(() => {\n  h();\n})|");
}

TEST_CASE("F-5: a sign behind the cursor stays behind lines that do not end with it") {
  CHECK(accepted("def f(^):", "a,\n      b") == "def f(a,\n      b|):");
  CHECK(accepted("a = f(^);", "() => {\n  g();\n}") == "a = f(() => {\n  g();\n}|);");
  CHECK(accepted("f(g(^),", "a),\n  b") == "f(g(a),\n  b|,");
}

TEST_CASE("F-5: where more follows than a sign, no line comes between") {
  CHECK(accepted("f(() => { g(^); });", "a);\n  h(b);") == "f(() => { g(a);| });");
}

TEST_CASE("F-5: a colon at both beginnings is one") {
  CHECK(accepted("name^:", ": value\nrun: b") == "name: value\nrun: b|");
  CHECK(accepted("a = b ? c ^:", ": d") == "a = b ? c : d|");
  CHECK(accepted("a[b^:]", ":c]") == "a[b:c]|");
  CHECK(accepted("case A^:", "::kB") == "case A::kB|:");
  CHECK(accepted("[\n  a^,\n]", ", b") == "[\n  a, b|,\n]");
}

TEST_CASE("F-5: a colon behind what is covered is one") {
  CHECK(accepted("f(a: ^):", "A): B {\n  c();\n}") == "f(a: A): B {\n  c();\n}|");
  CHECK(accepted("if f(^):", "a):  # what\n    g()") == "if f(a):  # what\n    g()|");
  CHECK(accepted("a = b ? f(^) :", "c) : d") == "a = b ? f(c) : d|");
  CHECK(accepted("{\"^\":", "a\": \"b\",") == "{\"a\": \"b\",|");
  CHECK(accepted("[\n  f(^),\n]", "a), b") == "[\n  f(a), b|,\n]");
}

TEST_CASE("F-5: angles count where one was auto-closed") {
  CHECK(accepted("vector<^>", "int> a;") == "vector<int> a;|");
  CHECK(accepted("vector<^>", "map<int, int>") == "vector<map<int, int>|>");
}

TEST_CASE("F-5: the rest of the line is not repeated") {
  CHECK(accepted("foo(^, b);", "a, b);") == "foo(a|, b);");
  CHECK(accepted("x = ^ + tail;", "head + tail;") == "x = head| + tail;");
  CHECK(accepted("return ^x + y;", "x + y;") == silent(completion::silence::kRepeats));
  CHECK(accepted("foo(^a, b);\n", "x, \nbar();") == "foo(x, |a, b);\n");
  CHECK(accepted("foo(^end);", "send") == "foo(s|end);");
}

TEST_CASE("F-4: lines that follow are not repeated") {
  CHECK(accepted("if (x) {^\n}\n", "\n    f();\n}") == "if (x) {\n    f();|\n}\n");
  CHECK(accepted("a = 1\n^\nreturn a + b\n", "b = 2\nreturn a + b\n") ==
        "a = 1\nb = 2|\nreturn a + b\n");
  CHECK(accepted("def f():\n    ^\n    return x\n", "return x") ==
        silent(completion::silence::kRepeats));
  CHECK(accepted("def f():\n    ^\n\n\n    g()\n    return x\n", "g()\n    return x") ==
        silent(completion::silence::kRepeats));
  CHECK(accepted("^\nf();\ng();\nh();\n", "e();\nf();\ng()") == "e();|\nf();\ng();\nh();\n");
}

TEST_CASE("F-4: a line of another block is no repetition") {
  CHECK(accepted("void f() {\n  if (x) {^\n}\n", "\n    g();\n  }") ==
        "void f() {\n  if (x) {\n    g();\n  }|\n}\n");
}

TEST_CASE("F-4: of CRLF lines, too") {
  CHECK(accepted("if (x) {^\r\n}\r\n", "\r\n    f();\r\n}") == "if (x) {\n    f();|\r\n}\r\n");
}

TEST_CASE("F-1: line ends become newlines") {
  CHECK(accepted("if (x) {^", "\r\n  a();\r  b();\n}") == "if (x) {\n  a();\n  b();\n}|");
}

TEST_CASE("F-1: control characters, broken code points and what is behind them are never shown") {
  CHECK(accepted("a = ^", "b\x1b[31mc") == "a = b|");
  CHECK(accepted("a = ^", "b\x7f") == "a = b|");
  CHECK(accepted("a = ^", "b\xC2\x9B") == "a = b|");
  CHECK(accepted("a = ^", "caf\xC3") == "a = caf|");
  CHECK(accepted("a = ^", "caf\xC3\xA9") == "a = caf\xC3\xA9|");
  CHECK(accepted("a = ^", "x\xFFy") == "a = x|");
  CHECK(accepted("a = ^", std::string("\0abc", 4)) == silent(completion::silence::kUnreadable));
}

TEST_CASE("F-2: no blanks at the end, nor twice at the beginning") {
  CHECK(accepted("a = ^", "b;  \n\n  ") == "a = b;|");
  CHECK(accepted("return ^;", " x") == "return x|;");
  CHECK(accepted("return^", " x") == "return x|");
  CHECK(accepted("x = ^b;", "a + ") == "x = a + |b;");
  CHECK(accepted("    ^", "    deep();") == "        deep();|");
}

TEST_CASE("F-2: a single blank behind whole levels of indentation is not indentation") {
  const std::string python = "class A:\n    def f(self):\n        x = 1\n";
  CHECK(accepted(python + "        ^\n", " return x") == python + "        return x|\n");
  CHECK(accepted(python + "       ^\n", " return x") == python + "        return x|\n");
  CHECK(accepted("/**\n^\n", " * text") == "/**\n * text|\n");
  CHECK(accepted("    /**\n    ^\n", " * text") == "    /**\n     * text|\n");
  CHECK(accepted("f {\n\tx\n\t^\n}\n", " y") == "f {\n\tx\n\ty|\n}\n");
}

TEST_CASE("F-6: white space alone is silent") {
  CHECK(accepted("a^", "  \n\t\n") == silent(completion::silence::kOnlyBlanks));
  CHECK(accepted("a^", "") == silent(completion::silence::kNothing));
}

TEST_CASE("F-3: a buffer of tabs gets tabs") {
  CHECK(accepted("f {\n\tx\n\tif y {^\n}\n", "\n        z\n    }") ==
        "f {\n\tx\n\tif y {\n\t\tz\n\t}|\n}\n");
  CHECK(accepted("f {\n\tx\n\tif y {^\n}\n", "\n    z\n  }") ==
        "f {\n\tx\n\tif y {\n\t\tz\n\t}|\n}\n");
  CHECK(accepted("f {\n\tx\n}\ng {\n^\n", "    y\n    z") == "f {\n\tx\n}\ng {\n\ty\n\tz|\n");
}

TEST_CASE("F-3: a buffer of spaces gets spaces") {
  CHECK(accepted("f {\n  x\n  if y {^\n}\n", "\n\t\tz\n\t}") ==
        "f {\n  x\n  if y {\n    z\n  }|\n}\n");
}

TEST_CASE("F-3: without an indented line the model's indentation stands") {
  CHECK(accepted("f {^", "\n    x\n}") == "f {\n    x\n}|");
  CHECK(accepted("f {^", "\n\tx\n}") == "f {\n\tx\n}|");
}

TEST_CASE("F-3: where tabs and spaces are mixed, the model's indentation stands") {
  const std::string begin = "f {\n    if a {\n\tb\n\tc\n    }\n    if d {^\n}\n";
  CHECK(accepted(begin, "\n\te\n    }") ==
        "f {\n    if a {\n\tb\n\tc\n    }\n    if d {\n\te\n    }|\n}\n");
}

TEST_CASE("the item's range ends at the cursor unless it covers something") {
  const Fitted fitted = fit_at("foo(^  ", "a");
  CHECK(fitted.text == "a");
  CHECK(fitted.replace_end == 4);
}

TEST_CASE("F-7: what the rest of the line closes is not closed before") {
  CHECK(accepted("send(^, 2);", "a, \"b\", c);") == "send(a, \"b\", c|, 2);");
  CHECK(accepted("if (sum(a, ^)) {\n}", "b, c) > d) {") == "if (sum(a, b, c|)) {\n}");
  CHECK(accepted("{\"b\": ^, \"c\": 2}", "1},") == "{\"b\": 1|, \"c\": 2}");
  CHECK(accepted("[f(^, 1) for x in y]", "x) for x in z]") == "[f(x|, 1) for x in y]");
  CHECK(accepted("  if (f(^) > 0) {\n  }", "a) > 1) {") == "  if (f(a|) > 0) {\n  }");
  CHECK(accepted("f(\n    ^, 2);", "a, b);") == "f(\n    a, b|, 2);");
}

TEST_CASE("F-7: only as many brackets go as the rest of the line closes") {
  CHECK(accepted("f(g(^, 2);", "a), b);") == "f(g(a), b|, 2);");
  CHECK(accepted("f(g(^), 2);", "a), b);") == "f(g(a|), 2);");
  CHECK(accepted("f(^, 2);", "a), g(b") == "f(a), g(b|, 2);");
  CHECK(accepted("f(^), 2);", "a") == "f(a|), 2);");
  CHECK(accepted("f(^))", "a);") == "f(a);|)");
  CHECK(accepted("f(^ + 1;", "a)") == "f(a)| + 1;");
}

TEST_CASE("F-7: no comment hides the rest of the line") {
  CHECK(accepted("int a = ^ + 1;", "b; // the base", "c") == "int a = b;| + 1;");
  CHECK(accepted("int a = ^ + 1;", "b /* the base", "c") == "int a = b| + 1;");
  CHECK(accepted("x = ^  # why", "1  # one", "python") == "x = 1|  # why");
  CHECK(accepted("x = 1; ^int y;", "// two,", "c") == silent(completion::silence::kUnbalanced));
  CHECK(accepted("f(^)", "a) # all", "python") == "f(a) # all|");
  CHECK(accepted("a = [^]", "1, # one\n2", "python") == "a = [1, # one\n2|]");
  CHECK(accepted("x = 1 # ^ and", "one # two", "python") == "x = 1 # one # two| and");
  CHECK(accepted("echo ${x^}", "#*/", "shellscript") == "echo ${x#*/|}");
}

TEST_CASE("F-7: the pattern of a shell's case may end with a bracket") {
  const std::string begin = "f() {\n  case $1 in\n    ";
  CHECK(accepted(begin + "^\n  esac\n}\n", "start) echo a ;;", "shellscript") ==
        begin + "start) echo a ;;|\n  esac\n}\n");
  CHECK(accepted(begin + "[^]\n  esac\n}\n", "ab]*)", "shellscript") ==
        begin + "[ab]*)|\n  esac\n}\n");
  CHECK(accepted("x=$(^)\n", "date)", "shellscript") == "x=$(date)|\n");
  CHECK(accepted("x=$(\n  a |\n    ^\n", "b)", "shellscript") == "x=$(\n  a |\n    b)|\n");
  CHECK(accepted(begin + "a) b ;;\n  esac\n^", "}", "shellscript") ==
        begin + "a) b ;;\n  esac\n}|");
}

TEST_CASE("F-7: only a word of a shell begins a comment") {
  CHECK(accepted("if ^\n", "[ $# -lt 2 ]; then", "shellscript") == "if [ $# -lt 2 ]; then|\n");
  CHECK(accepted("n=^\n", "${#words[@]}", "shellscript") == "n=${#words[@]}|\n");
  CHECK(accepted("f ^\n", "a # (b", "shellscript") == "f a # (b|\n");
}

TEST_CASE("F-7: a stray bracket above closes no other one") {
  CHECK(accepted("f {\n  -- 1) one\n  x\n^", "}") == "f {\n  -- 1) one\n  x\n}|");
  CHECK(accepted("f {\n  -- (one\n  x\n^", "}") == "f {\n  -- (one\n  x\n}|");
}

TEST_CASE("F-7: brackets and quotes of a regular expression are its own") {
  const auto shown = [](const std::string& source, const std::string& text) {
    return accepted(source, text, "typescript");
  };
  CHECK(shown("const a = ^\n", "b.replace(/[(\"']/g, '');") ==
        "const a = b.replace(/[(\"']/g, '');|\n");
  CHECK(shown("const a = /`/;\nconst b = ^\n", "`c`;") == "const a = /`/;\nconst b = `c`;|\n");
  CHECK(shown("return ^\n", "/\\/[/)]/.test(a) ? b / 2 : (c / 2);") ==
        "return /\\/[/)]/.test(a) ? b / 2 : (c / 2);|\n");
  CHECK(shown("const a = ^\n", "b / (c + d) / e;") == "const a = b / (c + d) / e;|\n");
  CHECK(shown("const a = <p>{b} ^</p>\n", "<br /> {c(d)}") ==
        "const a = <p>{b} <br /> {c(d)}|</p>\n");
}

TEST_CASE("F-7: an apostrophe in the text of JSX opens no string") {
  const auto shown = [](const std::string& source, const std::string& text) {
    return accepted(source, text, "typescriptreact");
  };
  CHECK(shown("a = <p>^\n", "Don't (stop)</p>;") == "a = <p>Don't (stop)</p>;|\n");
  CHECK(shown("a = <p>^\n", "caf\xC3\xA9's</p>;") == "a = <p>caf\xC3\xA9's</p>;|\n");
  CHECK(shown("import { a } ^\n", "from'b';") == "import { a } from'b';|\n");
  CHECK(shown("a = b^\n", " + 'c") == "a = b +|\n");
}

TEST_CASE("F-7: what the lines below close may be closed and opened again") {
  CHECK(accepted("if (a) {\n  b();\n^\n  c();\n}\n", "} else {", "c") ==
        "if (a) {\n  b();\n} else {|\n  c();\n}\n");
  CHECK(accepted("  x = {y ? (\n    a\n  ^\n    b\n  )}\n", ") : (", "typescriptreact") ==
        "  x = {y ? (\n    a\n  ) : (|\n    b\n  )}\n");
  CHECK(accepted("if (a) {\n  b();\n^\n  c();\n}\n", "}", "c") ==
        silent(completion::silence::kUnbalanced));
  CHECK(accepted("if (a) {\n  b();\n^\n  c();\n}\n", "}\n}\nif (d) {", "c") ==
        silent(completion::silence::kUnbalanced));
}

TEST_CASE("F-7: strings in the code of a string do not end it") {
  CHECK(accepted("puts ^\n", "\"#{f(\"a)\")}\"") == "puts \"#{f(\"a)\")}\"|\n");
  CHECK(accepted("puts \"#{f(^)}\"\n", "\"a)\")}\"") == "puts \"#{f(\"a)\")}\"|\n");
  CHECK(accepted("cd ^\n", "\"$(f \"a)\")\"", "shellscript") == "cd \"$(f \"a)\")\"|\n");
  CHECK(accepted("puts ^\n", "\"#{\" + \"b)\"") == "puts \"#{\" + \"b)\"|\n");
  CHECK(accepted("puts ^\n", "'#{' + ')'") == "puts '#{' + ')'|\n");
}

TEST_CASE("F-5: a quote that was closed in prose or in a comment is covered, too") {
  CHECK(accepted("the `^`\n", "name` of", "markdown") == "the `name` of|\n");
  CHECK(accepted("the `^`\n", "name", "markdown") == "the `name|`\n");
  CHECK(accepted("// the \"^\"\n", "License\");", "cpp") == "// the \"License\");|\n");
  CHECK(accepted("const a = `\n  \"b^\"\n`;\n", "c\": d,", "typescript") ==
        "const a = `\n  \"bc\": d,|\n`;\n");
}

TEST_CASE("a line of megabytes is looked at near the cursor only") {
  std::string line;
  while (line.size() < 3 * completion::kLineBytesMax) line += "f(a, \"é\"); ";
  const text::Document document("f(\n" + line + "g(\n" + line);
  const std::size_t cursor = 3 + line.size() + 2;
  const auto near =
      completion::context_at(*document.snapshot(), completion::language_of("c"), cursor, cursor);
  CHECK(near.line_before.size() <= completion::kLineBytesMax + 2);
  CHECK(near.line_before.ends_with("; g("));
  CHECK_FALSE(near.line_is_short);
  CHECK(completion::fit("b)); c(", near).text == "b)); c");
  const auto far = completion::context_at(*document.snapshot(), completion::language_of("c"), 2, 2);
  CHECK(far.line_is_short);
}

TEST_CASE("a language is known by each name that editors give it, else by its file's ending") {
  using completion::language_of;
  CHECK(language_of("zsh").name == "shellscript");
  CHECK(language_of("git-commit").prose);
  CHECK(language_of("gitcommit").prose);
  CHECK(language_of("restructuredtext").prose);
  CHECK(language_of("objcpp").name == "cpp");
  CHECK(language_of("", "file:///a.mts").name == "typescript");
  CHECK(language_of("", "file:///a.cuh").name == "cpp");
  CHECK(language_of("", "file:///a.kts").name == "java");
  CHECK(language_of("", "file:///a/b.c/d").name.empty());
}

TEST_CASE("F-5: the word that the cursor stands in is not typed again") {
  CHECK(accepted("let a = Bui^lder::new();", "lder::with(1);") ==
        silent(completion::silence::kRepeats));
  CHECK(accepted("s^elf.a = 1;", "elf.b") == silent(completion::silence::kRepeats));
  CHECK(accepted("// ^On Unix it is", "On Unix the", "cpp") ==
        silent(completion::silence::kRepeats));
  CHECK(accepted("get^Value()", "Current") == "getCurrent|Value()");
  CHECK(accepted("f(^a, b);", "a + 1, ") == "f(a + 1, |a, b);");
  CHECK(accepted("f(^a, b);", "ab, ") == "f(ab, |a, b);");
}

TEST_CASE("F-5: a word's second half is not typed again") {
  CHECK(accepted("r^turn cp;", "eturn 1;") == "re|turn cp;");
  CHECK(accepted("  fi^st++;", "rst--;") == "  fir|st++;");
  CHECK(accepted("x = fal^e", "se") == "x = fals|e");
  CHECK(accepted("x = fal^se", "se") == silent(completion::silence::kRepeats));
}

TEST_CASE("F-5: words that grow together make a known one") {
  CHECK(accepted("f(request^l)\nurl = 1\n", ".url") == "f(request.ur|l)\nurl = 1\n");
  CHECK(accepted("a = (^tions)\noptions = 1\n", "name, options") ==
        "a = (name, op|tions)\noptions = 1\n");
  CHECK(accepted("x = ^code;\nencode = 1;\n", "en") == "x = en|code;\nencode = 1;\n");
  CHECK(accepted("impo^s\n", "rt typing as t") == silent(completion::silence::kRepeats));
  CHECK(accepted("onErrorR^meNext()\n", "esu") == "onErrorResu|meNext()\n");
  CHECK(accepted("f(^5)\n", "-4, 1.23") == "f(-4, 1.23|5)\n");
  CHECK(accepted("#^if\n", "endif") == "#end|if\n");
  CHECK(accepted("get^Data()", "ID") == "getID|Data()");
  CHECK(accepted("f(^\xE6\x97\xA5)", "\xE6\x9C\xAC") == "f(\xE6\x9C\xAC|\xE6\x97\xA5)");
}

TEST_CASE("F-5: no sign that ends a statement stands before a word") {
  CHECK(accepted("retu^err;\n", "rn Z_BUF_ERROR;", "c") == silent(completion::silence::kRepeats));
  CHECK(accepted("for (i = 0; i < n^i++) {\n", ";", "c") == "for (i = 0; i < n;|i++) {\n");
  CHECK(accepted("x = \"a^b\"", "c;", "c") == "x = \"ac;|b\"");
}

TEST_CASE("F-4: a line that only begins the next one is not shown") {
  CHECK(accepted("\ta();\n\t^\n\tif (b)\n", "if", "c") == silent(completion::silence::kRepeats));
  CHECK(accepted("^\nlet a = b[c];\n", "let a = b") == silent(completion::silence::kRepeats));
  CHECK(accepted("^\nx = 10\n", "x = 1") == "x = 1|\nx = 10\n");
  CHECK(accepted("// a\n^\n// b\n", "//", "c") == "// a\n//|\n// b\n");
  CHECK(accepted("\ta();\n\tr^\n\treturn 1;\n", "eturn", "c") ==
        "\ta();\n\treturn|\n\treturn 1;\n");
}

TEST_CASE("F-4: the next line is not begun behind the cursor's line") {
  CHECK(accepted("void^\nlog_toggle(char *name)\n{\n}\n", " log_toggle(char *name)", "c") ==
        silent(completion::silence::kRepeats));
  CHECK(accepted("f(^\n  A{\n  });\n", "A{\n  B", "go") == silent(completion::silence::kRepeats));
}

TEST_CASE("F-4: the line above is not repeated") {
  CHECK(accepted("  \"Mara\",\n  \"Ma^\n  \"Maria\",\n", "ra\",") ==
        silent(completion::silence::kRepeatsAbove));
  CHECK(accepted("  f(a);\n  f(^)\n", "a);") == silent(completion::silence::kRepeatsAbove));
  CHECK(accepted("  f(a);\n\n  f(^)\n", "a);") == "  f(a);\n\n  f(a);|\n");
  CHECK(accepted("---\n^\n", "---", "markdown") == "---\n---|\n");
}

TEST_CASE("F-2: nothing is indented where no block begins") {
  CHECK(accepted("def f():\n    a()\n    ^\n", "    b()", "python") ==
        silent(completion::silence::kIndented));
  CHECK(accepted("if x:\n    if a:\n    ^\n", "    b()", "python") ==
        "if x:\n    if a:\n        b()|\n");
  CHECK(accepted("  if (a)\n  ^\n", "  b();", "c") == "  if (a)\n    b();|\n");
  CHECK(accepted("- a\n  ^\n", "  b", "markdown") == "- a\n    b|\n");
  CHECK(accepted("  x = \"\"\"\n  a\n  ^\n\"\"\"\n", "    b", "python") ==
        "  x = \"\"\"\n  a\n      b|\n\"\"\"\n");
}

TEST_CASE("F-3: where statements end with their lines, they have no semicolon") {
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += "f(" + std::to_string(i) + ")\n";
  CHECK(accepted(lines + "g(^)\n", "a);", "typescript") == lines + "g(a)|\n");
  CHECK(accepted(lines + "g(^)\n", "\"a;\");", "typescript") == lines + "g(\"a;\")|\n");
  CHECK(accepted(lines + "// g(^)\n", "a);", "typescript") == lines + "// g(a);|\n");
  CHECK(accepted(lines + "g(^)\n", "a);", "java") == lines + "g(a);|\n");
  CHECK(accepted(lines + "h();\ni();\ng(^)\n", "a);", "typescript") ==
        lines + "h();\ni();\ng(a);|\n");
}

TEST_CASE("F-7: at the file's end a block may begin") {
  CHECK(accepted("fn f(^", "a: u8) {", "rust") == "fn f(a: u8) {|");
  CHECK(accepted("fn f(^\n\n", "a: u8) {", "rust") == "fn f(a: u8) {|\n\n");
  CHECK(accepted("fn f(^\nfn g() {}\n", "a: u8) {", "rust") == "fn f(a: u8)|\nfn g() {}\n");
  CHECK(accepted("x = ^", "f(", "c") == "x = f|");
  CHECK(accepted("x = f(^", "a, g(b", "c") == "x = f(a, g|");
}

TEST_CASE("F-7: labels and a preprocessor's lines end no block below") {
  CHECK(accepted("switch x {\ncase 1:\n\tf()^\ncase 2:\n\tg()\n}\n", "\n}", "go") ==
        silent(completion::silence::kUnbalanced));
  const std::string cases = "case 1: {\n  f();^\ncase 2: {\n  g();\n}\n";
  CHECK(accepted(cases, "\n}", "c") == "case 1: {\n  f();\n}|\ncase 2: {\n  g();\n}\n");
  CHECK(accepted("^\ncase 1:\n\tf()\n}\n", "switch x {", "go") ==
        "switch x {|\ncase 1:\n\tf()\n}\n");
  CHECK(accepted("void f() {\n  a();^\n#if B\n  b();\n#endif\n}\n", "\n}", "cpp") ==
        silent(completion::silence::kUnbalanced));
  CHECK(accepted("class A^\n public:\n  int b;\n\nprivate:\n  int c;\n};\n", " {", "cpp") ==
        "class A {|\n public:\n  int b;\n\nprivate:\n  int c;\n};\n");
}

TEST_CASE("F-7: a bracket behind a statement of several lines is closed at its begin") {
  CHECK(accepted("void f(int a,\n       ^\n  g();\n}\n", "int b) {", "cpp") ==
        "void f(int a,\n       int b) {|\n  g();\n}\n");
}
