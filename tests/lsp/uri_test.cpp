#include "lsp/uri.h"

#include <catch2/catch.hpp>

using namespace efimd;
using namespace efimd::lsp;

TEST_CASE("file URIs become paths") {
  CHECK(path_of("file:///home/a%20b/x.c").value() == "/home/a b/x.c");
  CHECK(path_of("FILE:///x").value() == "/x");
  CHECK(path_of("file:/x").value() == "/x");
  CHECK(path_of("file://localhost/x").value() == "/x");
  CHECK(path_of("file:///caf%C3%A9").value() == "/caf\u00e9");
  CHECK(path_of("file:///a%2525").value() == "/a%25");
  CHECK(path_of("file:///x.c?query#fragment").value() == "/x.c");
  CHECK(path_of("file:///a%23b").value() == "/a#b");
}

TEST_CASE("Windows paths are tolerated and their drives compare equal") {
  CHECK(path_of("file:///c%3A/src/x.cpp").value() == "c:/src/x.cpp");
  CHECK(path_of("file:///C:/src/x.cpp").value() == "c:/src/x.cpp");
  CHECK(path_of("file://server/share/x").value() == "//server/share/x");
  CHECK(path_of("file:////server/share/x").value() == "//server/share/x");
  CHECK(path_of("file:////localhost//x").value() == "/x");
  CHECK(path_of("file:////x").value() == "/x");
  CHECK(path_of("file:////").value() == "/");
  CHECK_FALSE(path_of("file://a%2Fb/x"));
  CHECK(file_uri("C:\\src\\a b.c") == "file:///c%3A/src/a%20b.c");
}

TEST_CASE("what names no file is refused with its reason") {
  const auto refused = [](const std::string& uri, Fault fault, const std::string& named) {
    INFO(uri);
    const Result<std::string> path = path_of(uri);
    REQUIRE_FALSE(path);
    CHECK(path.error().fault == fault);
    CHECK_THAT(path.error().message(), Catch::Contains(named));
  };
  refused("untitled:Untitled-1", Fault::kUnsupported, "untitled");
  refused("vscode-notebook-cell:/a.ipynb#W0", Fault::kUnsupported, "names no file");
  refused("/plain/path", Fault::kUnsupported, "names no file");
  refused("", Fault::kUnsupported, "names no file");
  refused("file:relative", Fault::kBadInput, "absolute");
  refused("file://", Fault::kBadInput, "absolute");
  refused("file:///a%0", Fault::kBadInput, "broken escape \"%0\" at byte 4");
  refused("file:///a%zz", Fault::kBadInput, "broken escape");
  refused("file:///a%00b", Fault::kBadInput, "NUL");
  refused(std::string("file:///a\0b", 11), Fault::kBadInput, "NUL");
  refused("file://a%00b/c", Fault::kBadInput, "NUL");
}

TEST_CASE("paths survive the way to a URI and back") {
  for (const std::string path :
       {"/a b/c#d?e%f", "/caf\u00e9/\U0001F600", "//server/share/x", "c:/x y", "/\xFF\xFE", "/"})
    CHECK(path_of(file_uri(path)).value() == path);
}

TEST_CASE("the path of a part of a file has the part's ending") {
  CHECK(text_path_of("file:///a%20b.ipynb#.py").value() == "/a b.ipynb.py");
  CHECK(path_of("file:///a%20b.ipynb#.py").value() == "/a b.ipynb");
  for (const char* whole :
       {"file:///a.c", "file:///a.c#", "file:///a.c#.", "file:///a.c#x.py", "file:///a.c#.p%79",
        "file:///a.c#./etc", "file:///a.c#.aaaaaaaaaaaaaaaaa"})
    CHECK(text_path_of(whole).value() == "/a.c");
  CHECK_FALSE(text_path_of("untitled:Untitled-1.ipynb#.py"));
}

TEST_CASE("schemes are recognized") {
  CHECK(scheme_of("file:///x") == "file");
  CHECK(scheme_of("untitled:Untitled-1") == "untitled");
  CHECK(scheme_of("VSCode-Notebook-Cell:/x#W0") == "vscode-notebook-cell");
  CHECK(scheme_of("c:/x").empty());
  CHECK(scheme_of("no scheme").empty());
  CHECK(scheme_of(":x").empty());
  CHECK(scheme_of("").empty());
}

TEST_CASE("a document has a short name") {
  CHECK(base_name("file:///a/b%20c.cpp") == "b c.cpp");
  CHECK(base_name("untitled:Untitled-1") == "Untitled-1");
  CHECK(base_name("vscode-notebook-cell:/a/n.ipynb#W0s") == "n.ipynb");
  CHECK(base_name("file:///a/b/") == "b");
  CHECK(base_name("").empty());
}

TEST_CASE("what is displayed is valid UTF-8 without control characters") {
  CHECK(display("file:///a%20b.c") == "/a b.c");
  CHECK(display("untitled:Untitled%201") == "untitled:Untitled 1");
  CHECK(display("file:///a%1B%5B31m%0A%7F") == "/a?[31m??");
  CHECK(display("file:///a%C2%9Bx%C2%A0") == "/a?x\u00a0");
  CHECK(display("file:///a%FFb") == "/a\uFFFDb");
  CHECK(display("file:///broken%zz") == "file:///broken%zz");
}
