#include "net/http/documents.h"

#include <catch2/catch.hpp>

#include "daemon/client/document_mirror.h"
#include "lsp/json_rpc.h"
#include "lsp/uri.h"
#include "tests/support/json_of.h"

using namespace efimd;
using namespace efimd::http;
using lsp::Json;

namespace {

const Documents::Clock::time_point kNow{};

std::string declarations(int begin, int end) {
  std::string text;
  for (int line = begin; line < end; ++line) text += "int value_" + std::to_string(line) + ";\n";
  return text;
}

Json parsed(const std::string& body) { return test::json_of(body); }

/// What the daemon has after the messages.
struct Daemon {
  service::DocumentMirror mirror;

  void take(const Placed& placed) {
    for (const std::string& body : placed.messages) {
      const Json message = parsed(body);
      mirror.note(message["method"], message["params"], lsp::PositionEncoding::kUtf8);
    }
  }
  std::string text_of(const std::string& uri) const {
    for (const std::string& body : mirror.reopening())
      if (parsed(body)["params"]["textDocument"]["uri"] == uri)
        return parsed(body)["params"]["textDocument"]["text"];
    return "not open";
  }
};

}  // namespace

TEST_CASE("the first text is opened, and a keystroke after it is a small change to it") {
  Documents documents;
  Daemon daemon;
  const Placed first =
      documents.place({declarations(0, 9) + "int m", "\n" + declarations(9, 20)}, kNow);
  daemon.take(first);
  const Placed second =
      documents.place({declarations(0, 9) + "int ma", "\n" + declarations(9, 20)}, kNow);
  daemon.take(second);
  CHECK(second.uri == first.uri);
  CHECK(second.cursor == lsp::Position{9, 6});
  REQUIRE(second.messages.size() == 1);
  const Json change = parsed(second.messages[0])["params"]["contentChanges"];
  CHECK(change == test::json_of(R"([{"range": {"start": {"line": 9, "character": 5},
                                             "end": {"line": 9, "character": 5}}, "text": "a"}])"));
  CHECK(daemon.text_of(first.uri) == declarations(0, 9) + "int ma\n" + declarations(9, 20));
}

TEST_CASE("asked again for the same text, nothing is sent") {
  Documents documents;
  documents.place({"int a", ";\n"}, kNow);
  CHECK(documents.place({"int a", ";\n"}, kNow).messages.empty());
}

TEST_CASE("a window that slides down a file builds the file up") {
  Documents documents;
  Daemon daemon;
  std::string uri;
  for (int line = 300; line < 400; ++line) {
    const Placed placed =
        documents.place({declarations(line - 256, line), declarations(line, line + 64)}, kNow);
    daemon.take(placed);
    if (uri.empty()) uri = placed.uri;
    CHECK(placed.uri == uri);
    CHECK(placed.cursor == lsp::Position{256U + static_cast<unsigned>(line) - 300U, 0});
  }
  const std::string text = daemon.text_of(uri);
  CHECK(text.starts_with(declarations(44, 45)));
  CHECK(text.find(declarations(44, 420)) == 0);
}

TEST_CASE("another file is another document, and the first is found again") {
  Documents documents;
  const std::string one = documents.place({declarations(0, 50), declarations(50, 60)}, kNow).uri;
  const std::string two = documents.place({declarations(900, 950), "\n"}, kNow).uri;
  CHECK(one != two);
  CHECK(documents.place({declarations(0, 50) + "x", declarations(50, 60)}, kNow).uri == one);
}

TEST_CASE("files that clients name are kept apart by their names, which become the URI's") {
  Documents documents;
  const std::string text = declarations(0, 50);
  const std::string one = documents.place({text, "", "src/a b.cpp"}, kNow).uri;
  const std::string two = documents.place({text, "", "src/b.cpp"}, kNow).uri;
  CHECK(one != two);
  CHECK(lsp::base_name(one) == "a b.cpp");
  CHECK(lsp::scheme_of(one) == "efimd-http");
  CHECK(lsp::base_name(documents.place({text, "", "../../.env"}, kNow).uri) == ".env");
}

TEST_CASE(
    "a document of an editor's is copied if the text is a part of it, and goes on from there") {
  Documents documents;
  Daemon daemon;
  const Surroundings text{declarations(20, 30) + "x", "\n" + declarations(30, 40)};
  CHECK(documents.adopt({"file:///b.cpp", "cpp", declarations(900, 990)}, text, kNow).empty());
  Placed placed;
  placed.messages = documents.adopt({"file:///a.cpp", "cpp", declarations(0, 90)}, text, kNow);
  REQUIRE(placed.messages.size() == 1);
  daemon.take(placed);
  CHECK(documents.adopt({"file:///a.cpp", "cpp", declarations(0, 90)}, text, kNow).empty());
  placed = documents.place(text, kNow);
  daemon.take(placed);
  CHECK(placed.uri == "file:///a.cpp");
  CHECK(placed.cursor == lsp::Position{30, 1});
  CHECK(daemon.text_of(placed.uri) == declarations(0, 30) + "x\n" + declarations(30, 90));
}

TEST_CASE("documents are bounded in number and in time") {
  Documents documents;
  std::vector<std::string> uris;
  for (int file = 0; file <= static_cast<int>(Documents::kDocumentsMax); ++file) {
    const Placed placed = documents.place({declarations(file * 1000, file * 1000 + 30), ""},
                                          kNow + std::chrono::seconds(file));
    uris.push_back(placed.uri);
    if (file < static_cast<int>(Documents::kDocumentsMax)) continue;
    REQUIRE(placed.messages.size() == 2);
    CHECK(parsed(placed.messages[0])["method"] == "textDocument/didClose");
    CHECK(parsed(placed.messages[0])["params"]["textDocument"]["uri"] == uris.front());
  }
  CHECK(documents.size() == Documents::kDocumentsMax);
  CHECK(documents.close_idle(kNow + Documents::kIdleMax).empty());
  CHECK(documents.close_idle(kNow + Documents::kIdleMax + std::chrono::seconds(3)).size() == 3);
  CHECK(documents.close_idle(kNow + Documents::kIdleMax * 2).size() ==
        Documents::kDocumentsMax - 3);
  CHECK(documents.size() == 0);
}

TEST_CASE("a document over its limit goes on with what the client shows") {
  Documents documents;
  Daemon daemon;
  const std::string half(Documents::kTextBytesMax / 2 + 1000, 'a');
  const Placed first = documents.place({"head\n" + half + "\n", ""}, kNow);
  daemon.take(first);
  const Placed second = documents.place({"head\n" + half + "\n" + half + "\n", ""}, kNow);
  daemon.take(second);
  CHECK(second.uri != first.uri);
  CHECK(daemon.text_of(first.uri) == "not open");
  CHECK(daemon.mirror.size() == documents.size());
}

TEST_CASE("what stands after the cursor on its line comes with its place") {
  Documents documents;
  CHECK(documents.place({"f(", ")\nmore\n"}, kNow).rest == ")");
  CHECK(documents.place({"é(", ");"}, kNow).cursor == lsp::Position{0, 3});
}
