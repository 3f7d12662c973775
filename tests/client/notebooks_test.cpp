// BR-7: what the daemon is told of notebooks.
#include "daemon/client/notebooks.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/client/document_mirror.h"
#include "daemon/client/file_ending.h"
#include "daemon/text/cell_language.h"
#include "lsp/uri.h"
#include "tests/client/bridge_harness.h"

using namespace efimd;
using namespace efimd::test;
using service::Notebooks;

namespace {

constexpr char kNotebook[] = "file:///a.ipynb";
constexpr char kPython[] = "file:///a.ipynb#.py";
constexpr auto kUtf16 = lsp::PositionEncoding::kUtf16;

std::string cell_uri(const std::string& name) { return "vscode-notebook-cell:/a.ipynb#" + name; }

struct Cell {
  std::string name;
  std::string text;
  std::string language = "python";
  int kind = 2;
};

Json listed(const std::vector<Cell>& cells) {
  Json list = Json::array();
  for (const Cell& cell : cells)
    list.push_back({{"kind", cell.kind}, {"document", cell_uri(cell.name)}});
  return list;
}

Json texts_of(const std::vector<Cell>& cells) {
  Json list = Json::array();
  for (const Cell& cell : cells)
    list.push_back({{"uri", cell_uri(cell.name)},
                    {"languageId", cell.language},
                    {"version", 1},
                    {"text", cell.text}});
  return list;
}

Json opening_of(const std::vector<Cell>& cells) {
  return {{"notebookDocument",
           {{"uri", kNotebook},
            {"notebookType", "jupyter-notebook"},
            {"version", 1},
            {"cells", listed(cells)}}},
          {"cellTextDocuments", texts_of(cells)}};
}

Json change_of(const char* part, Json value) {
  return {{"notebookDocument", {{"uri", kNotebook}, {"version", 2}}},
          {"change", {{"cells", {{part, std::move(value)}}}}}};
}

/// `count` cells from `start` on make way for `cells`, whose texts are new unless they moved.
Json splice(int start, int count, const std::vector<Cell>& cells,
            const std::vector<Cell>& opened = {}, const std::vector<std::string>& closed = {}) {
  Json gone = Json::array();
  for (const std::string& name : closed) gone.push_back({{"uri", cell_uri(name)}});
  return change_of("structure",
                   {{"array", {{"start", start}, {"deleteCount", count}, {"cells", listed(cells)}}},
                    {"didOpen", texts_of(opened)},
                    {"didClose", std::move(gone)}});
}

Json range(int line, int character, int end_line, int end_character) {
  return {{"start", {{"line", line}, {"character", character}}},
          {"end", {{"line", end_line}, {"character", end_character}}}};
}

Json edit(const std::string& name, Json in, const std::string& text) {
  Json step = {{"text", text}};
  if (!in.is_null()) step["range"] = std::move(in);
  return change_of("textContent", Json::array({{{"document", {{"uri", cell_uri(name)}}},
                                                {"changes", Json::array({std::move(step)})}}}));
}

/// Notebooks, and the documents that a daemon has by what it is told.
struct Daemon {
  Notebooks notebooks;
  service::DocumentMirror documents;
  std::vector<Notebooks::Told> told;  ///< by the last message
  std::string trouble;
  lsp::PositionEncoding encoding = kUtf16;

  explicit Daemon(const std::vector<Cell>& cells = {}) {
    if (!cells.empty()) hear("notebookDocument/didOpen", opening_of(cells));
  }
  void hear(const std::string& method, const Json& params) {
    Notebooks::Heard heard = notebooks.note(method, params, encoding);
    told = std::move(heard.told);
    trouble = heard.trouble;
    for (const auto& each : told) documents.note(each.method, each.params, encoding);
  }
  void change(const Json& params) { hear("notebookDocument/didChange", params); }
  std::map<std::string, std::string> texts() const {
    std::map<std::string, std::string> texts;
    for (const Json& body : parsed(documents.reopening())) {
      const Json& document = body["params"]["textDocument"];
      texts[document["uri"]] = document["text"];
    }
    return texts;
  }
  std::string python() const { return texts().at(kPython); }
  std::vector<std::string> methods() const {
    std::vector<std::string> names;
    for (const auto& each : told) names.push_back(each.method);
    return names;
  }
};

const std::vector<Cell> kCells = {{"title", "# Title", "markdown", 1},
                                  {"a", "import os\nx = 1"},
                                  {"note", "text", "markdown", 1},
                                  {"b", "y = x\n"},
                                  {"c", ""}};

Json request_in(const std::string& name, int line, int character) {
  return {{"textDocument", {{"uri", cell_uri(name)}}},
          {"position", {{"line", line}, {"character", character}}},
          {"context", {{"triggerKind", 2}}}};
}

/// The params of the request as the daemon gets them.
Json redirected(const Notebooks& notebooks, const Json& params) {
  lsp::Message message{lsp::Message::Kind::kRequest,
                       std::int64_t{4},
                       "textDocument/inlineCompletion",
                       params,
                       {},
                       {}};
  std::string body = "as it was";
  const auto first = notebooks.redirect(message, body);
  if (!first) return body;
  return Json::parse(body)["params"];
}

}  // namespace

TEST_CASE("the code cells in one language are one document of the daemon") {
  const Daemon daemon(kCells);
  REQUIRE(daemon.methods() == Names{"textDocument/didOpen"});
  CHECK(daemon.told[0].params["textDocument"]["languageId"] == "python");
  CHECK(daemon.texts() ==
        std::map<std::string, std::string>{{kPython, "import os\nx = 1\n\ny = x\n\n\n"}});
}

TEST_CASE("cells in other languages are documents of their own, also by their first line") {
  const Daemon daemon({{"a", "x = 1"},
                       {"b", "%%bash\nls"},
                       {"c", "select 1", "sql"},
                       {"d", "%%time\ny = 2"},
                       {"e", "text", ""}});
  CHECK(daemon.texts() ==
        std::map<std::string, std::string>{{"file:///a.ipynb#.py", "x = 1\n\n%%time\ny = 2"},
                                           {"file:///a.ipynb#.sh", "%%bash\nls"},
                                           {"file:///a.ipynb#.sql", "select 1"},
                                           {"file:///a.ipynb#.txt", "text"}});
  CHECK(text::cell_language("python", "%%bash -s\n") == "shellscript");
  CHECK(text::cell_language("julia", "%%bash\n") == "julia");
  CHECK(text::cell_language("", "") == "plaintext");
  CHECK(service::file_ending("c++/../" + std::string(99, 'x')).size() <= lsp::kPartEndingBytesMax);
  CHECK(service::file_ending("??") == "txt");
}

TEST_CASE("a keystroke in a cell is one edit of that size") {
  Daemon daemon(kCells);
  daemon.change(edit("b", range(0, 5, 0, 5), " + 1"));
  REQUIRE(daemon.told.size() == 1);
  CHECK(daemon.told[0].method == "textDocument/didChange");
  CHECK(daemon.told[0].params["contentChanges"] ==
        Json::array({{{"range", range(3, 5, 3, 5)}, {"text", " + 1"}}}));
  CHECK(daemon.python() == "import os\nx = 1\n\ny = x + 1\n\n\n");
}

TEST_CASE("edits count in the encoding that the daemon chose") {
  const std::map<lsp::PositionEncoding, int> behind = {{lsp::PositionEncoding::kUtf8, 4},
                                                       {lsp::PositionEncoding::kUtf16, 2},
                                                       {lsp::PositionEncoding::kUtf32, 1}};
  for (const auto& [encoding, character] : behind) {
    Daemon daemon;
    daemon.encoding = encoding;
    daemon.hear("notebookDocument/didOpen", opening_of({{"a", ""}, {"b", "\U0001F600b"}}));
    daemon.change(edit("b", range(0, character, 0, character), "a"));
    CHECK(daemon.told[0].params["contentChanges"][0]["range"]["start"]["character"] == character);
    CHECK(daemon.python() == "\n\n\U0001F600ab");
  }
}

TEST_CASE("the document follows cells that come, go, move and change their language") {
  Daemon daemon(kCells);
  daemon.change(splice(2, 1, {{"d", ""}}, {{"d", "z = 3"}}, {"note"}));
  CHECK(daemon.python() == "import os\nx = 1\n\nz = 3\n\ny = x\n\n\n");
  daemon.change(splice(1, 3, {{"b", ""}, {"d", ""}, {"a", ""}}));  // moved: no text is opened
  CHECK(daemon.python() == "y = x\n\n\nz = 3\n\nimport os\nx = 1\n\n");
  daemon.change(splice(4, 1, {}, {}, {"c"}));
  CHECK(daemon.python() == "y = x\n\n\nz = 3\n\nimport os\nx = 1");
  daemon.change(change_of("data", listed({{"b", "", "", 1}})));
  CHECK(daemon.python() == "z = 3\n\nimport os\nx = 1");
  daemon.change(edit("d", Json(), "%%sh\nls"));
  CHECK(daemon.methods() == Names{"textDocument/didChange", "textDocument/didOpen"});
  CHECK(daemon.texts().at("file:///a.ipynb#.sh") == "%%sh\nls");
  daemon.change(splice(2, 1, {}, {}, {"d"}));
  CHECK(daemon.methods() == Names{"textDocument/didClose"});
  CHECK(daemon.texts().size() == 1);
  daemon.change(splice(0, 0, {{"d", ""}}));  // whose text was closed
  CHECK((daemon.told.empty() && daemon.trouble.empty()));
  daemon.hear("notebookDocument/didClose", {{"notebookDocument", {{"uri", kNotebook}}}});
  CHECK(daemon.texts().empty());
}

TEST_CASE("what changes no code is told to nobody") {
  Daemon daemon(kCells);
  daemon.change(edit("title", Json(), "# Another"));
  CHECK(daemon.told.empty());
  daemon.change(edit("a", Json(), "import os\r\nx = 1"));
  CHECK(daemon.told.empty());
  daemon.hear("notebookDocument/didSave", {{"notebookDocument", {{"uri", kNotebook}}}});
  CHECK((daemon.told.empty() && daemon.trouble.empty()));
}

TEST_CASE("positions past a cell's text never reach into another cell") {
  Daemon daemon(kCells);
  daemon.change(edit("a", range(1, 4, 99, 0), "!"));
  CHECK(daemon.python() == "import os\nx = !\n\ny = x\n\n\n");
  daemon.change(edit("a", range(7, 7, 1, 0), "?\r"));  // the ends are exchanged
  CHECK(daemon.python() == "import os\n?\n\n\ny = x\n\n\n");
  daemon.change(edit("c", range(0, 99, 5, 99), "end"));
  CHECK(daemon.python() == "import os\n?\n\n\ny = x\n\n\nend");
}

TEST_CASE("a request in a code cell is one in its document") {
  const Daemon daemon(kCells);
  Json params = request_in("b", 0, 3);
  params["partialResultToken"] = 5;
  params["context"]["selectedCompletionInfo"] = {{"range", range(0, 1, 9, 1)}, {"text", "x"}};
  const Json there = redirected(daemon.notebooks, params);
  CHECK(there["textDocument"]["uri"] == kPython);
  CHECK(there["position"] == Json{{"line", 3}, {"character", 3}});
  const Json& selected = there["context"]["selectedCompletionInfo"]["range"];
  CHECK(selected["start"] == Json{{"line", 3}, {"character", 1}});
  CHECK(selected["end"]["line"] == 4);
  CHECK_FALSE(there.contains("partialResultToken"));
  CHECK(redirected(daemon.notebooks, request_in("a", 5, 0))["position"]["line"] == 1);
  CHECK(redirected(daemon.notebooks, request_in("c", 0, 0))["position"]["line"] == 6);
}

TEST_CASE("a request in a text cell, in no cell or at a bad place is left to the daemon") {
  const Daemon daemon(kCells);
  CHECK(redirected(daemon.notebooks, request_in("title", 0, 0)) == "as it was");
  CHECK(redirected(daemon.notebooks, request_in("other", 0, 0)) == "as it was");
  CHECK(redirected(daemon.notebooks, Json(3)) == "as it was");
  CHECK(redirected(daemon.notebooks, request_in("a", -1, 0))["position"]["line"] == -1);
  CHECK(redirected(Notebooks(), request_in("a", 0, 0)) == "as it was");
}

TEST_CASE("an answer has the cell's lines, whatever else is in it") {
  const Json item = {{"insertText", "x"}, {"range", range(5, 1, 5, 2)}};
  CHECK(Notebooks::lifted({{"items", {item}}}, 3)["items"][0]["range"] == range(2, 1, 2, 2));
  for (const char* odd : {"null", "3", R"({"items":3})", R"({"items":[3,{"range":[]}]})"})
    CHECK(Notebooks::lifted(Json::parse(odd), 3) == Json::parse(odd));
}

TEST_CASE("a notebook with a change that cannot be right is dropped until it is opened again") {
  const std::vector<std::pair<Json, std::string>> bad = {
      {splice(6, 0, {}), "a change is about cells that it does not have"},
      {splice(2, 4, {}), "a change is about cells that it does not have"},
      {splice(0, 0, {{"a", ""}}), "two of its cells have one URI"},
      {splice(-1, 0, {}), "params.change.cells.structure.array.start must be"},
      {change_of("structure", 3), "params.change.cells.structure must be an object"},
      {change_of("textContent", {{{"document", {{"uri", cell_uri("a")}}}}}), ".changes must be"},
      {change_of("data", {{{"kind", "code"}}}), ".document must be"}};
  for (const auto& [params, why] : bad) {
    INFO(params.dump());
    Daemon daemon(kCells);
    daemon.change(params);
    CHECK(daemon.trouble.starts_with("No completions in /a.ipynb: "));
    CHECK(daemon.trouble.find(why) != std::string::npos);
    CHECK(daemon.trouble.ends_with("; close it and open it again"));
    CHECK(daemon.texts().empty());
    CHECK(redirected(daemon.notebooks, request_in("a", 0, 0)) == "as it was");
    daemon.change(edit("a", range(0, 0, 0, 0), "x"));  // told once
    CHECK((daemon.told.empty() && daemon.trouble.empty()));
    daemon.hear("notebookDocument/didOpen", opening_of(kCells));
    CHECK(daemon.texts().size() == 1);
  }
}

TEST_CASE("bad openings are told, and unknown notebooks and cells are ignored") {
  Daemon daemon;
  for (const Json& params : {Json(), Json(3), Json{{"notebookDocument", 3}}}) {
    daemon.hear("notebookDocument/didOpen", params);
    CHECK(daemon.trouble.starts_with("No completions in a notebook: params"));
  }
  daemon.hear("notebookDocument/didOpen",
              {{"notebookDocument", {{"uri", kNotebook}, {"cells", 3}}}});
  CHECK(daemon.trouble.find("params.notebookDocument.cells must be an array") != std::string::npos);
  daemon.change(splice(0, 1, {}));
  daemon.hear("notebookDocument/didClose", Json());
  CHECK((daemon.told.empty() && daemon.trouble.empty()));
  daemon.hear("notebookDocument/didOpen", opening_of(kCells));
  daemon.hear("notebookDocument/didOpen", opening_of({{"only", "z"}}));  // anew
  CHECK(daemon.methods() == Names{"textDocument/didClose", "textDocument/didOpen"});
  daemon.change(edit("a", range(0, 0, 0, 0), "x"));
  daemon.change(splice(1, 0, {{"without_text", ""}}));
  CHECK((daemon.told.empty() && daemon.trouble.empty() && daemon.python() == "z"));
}

TEST_CASE("a notebook with too many cells is told") {
  std::vector<Cell> many;
  for (std::size_t i = 0; i < Notebooks::kCellsMax; ++i) many.push_back({std::to_string(i), ""});
  Json opening = opening_of({});
  opening["notebookDocument"]["cells"] = listed(many);
  Daemon daemon;
  daemon.hear("notebookDocument/didOpen", opening);
  CHECK(daemon.trouble.empty());
  daemon.change(splice(0, 0, {{"more", ""}}));
  CHECK(daemon.trouble.find("it has more than 10000 cells") != std::string::npos);
  opening["notebookDocument"]["cells"].push_back(listed({{"more", ""}})[0]);
  daemon.hear("notebookDocument/didOpen", opening);
  CHECK(daemon.trouble.find("it has more than 10000 cells") != std::string::npos);
}

TEST_CASE("a notebook with too much text is told") {
  Daemon daemon;
  const std::string half(text::kDocumentBytesMax / 2, 'x');
  daemon.hear("notebookDocument/didOpen", opening_of({{"a", half}, {"b", half}}));
  CHECK(daemon.trouble.find("bytes, over the limit") != std::string::npos);
  CHECK(daemon.texts().empty());
}

TEST_CASE("whatever is edited in whatever order, the document is the cells") {
  std::mt19937 random(5);
  const auto below = [&](std::size_t most) { return static_cast<int>(random() % most); };
  const std::vector<std::string> pieces = {"", "\n", "a", "é", "\U0001F600", "b\r\nc", "\r"};
  std::vector<Cell> cells = {{"0", "x"}, {"1", "y\n"}};
  Daemon daemon(cells);
  // What the editor has in each cell, by the rules of documents.
  std::map<std::string, text::Document> texts;
  for (const Cell& cell : cells) texts.emplace(cell.name, text::Document(cell.text));
  int made = 2;
  for (int round = 0; round < 1000; ++round) {
    if (below(8) == 0) {
      const int start = below(cells.size() + 1);
      const int count = below(cells.size() - static_cast<std::size_t>(start) + 1);
      std::vector<Cell> fresh;
      for (int i = below(4); i > 0; --i)
        fresh.push_back({std::to_string(made++), pieces[random() % pieces.size()]});
      std::vector<std::string> closed;
      for (int i = start; i < start + count; ++i) closed.push_back(cells[std::size_t(i)].name);
      cells.erase(cells.begin() + start, cells.begin() + start + count);
      cells.insert(cells.begin() + start, fresh.begin(), fresh.end());
      for (const Cell& cell : fresh) texts.emplace(cell.name, text::Document(cell.text));
      daemon.change(splice(start, count, fresh, fresh, closed));
    } else if (!cells.empty()) {
      const std::string& name = cells[random() % cells.size()].name;
      const auto position = [&] {
        return lsp::Position{std::uint32_t(below(4)), std::uint32_t(below(6))};
      };
      const lsp::Range place{position(), position()};
      const std::string& text = pieces[random() % pieces.size()];
      text::Revision revision = texts.at(name).revise();
      REQUIRE(service::apply_change(revision, {place, text}, kUtf16));
      texts.at(name).adopt(std::move(revision));
      daemon.change(edit(name, lsp::to_json(place), text));
    }
    std::string joined;
    for (const Cell& cell : cells)
      joined.append(&cell == &cells.front() ? "" : "\n\n")
          .append(texts.at(cell.name).snapshot()->bytes());
    REQUIRE(daemon.trouble.empty());
    REQUIRE(daemon.texts().size() == (cells.empty() ? 0 : 1));
    if (!cells.empty()) REQUIRE(daemon.python() == joined);
  }
}

TEST_CASE("BR-7 a daemon hears of documents, the editor of cells, and a new daemon learns them") {
  Harness h;
  h.session.editor_says(request(
      1, "initialize", {{"capabilities", {{"notebookDocument", {{"synchronization", {}}}}}}}));
  h.connect();
  const Json sync = h.for_editor()[0]["result"]["capabilities"]["notebookDocumentSync"];
  CHECK(sync["notebookSelector"][0]["notebook"]["scheme"] == "file");
  h.session.editor_says(notification("notebookDocument/didOpen", opening_of(kCells)));
  h.session.editor_says(
      notification("notebookDocument/didChange", edit("b", range(0, 5, 0, 5), " + 1")));
  h.session.editor_says(
      notification("efim/didFocus", {{"textDocument", {{"uri", cell_uri("b")}}}}));
  h.session.editor_says(request(4, "textDocument/inlineCompletion", request_in("b", 0, 9)));
  const auto told = h.for_daemon();
  CHECK(methods(told) == Names{"textDocument/didOpen", "textDocument/didChange", "efim/didFocus",
                               "textDocument/inlineCompletion"});
  for (const Json& each : told) CHECK(each["params"]["textDocument"]["uri"] == kPython);
  h.session.disconnected();
  const auto again = h.connect();
  REQUIRE(methods(again) == Names{"textDocument/didOpen", "textDocument/inlineCompletion"});
  CHECK(again[0]["params"]["textDocument"]["text"] == "import os\nx = 1\n\ny = x + 1\n\n\n");
  CHECK(again[1]["params"]["position"] == Json{{"line", 3}, {"character", 9}});
  const Json item = {{"insertText", "x"}, {"range", range(3, 9, 3, 9)}};
  h.session.daemon_says(lsp::response_body(std::int64_t{4}, {{"items", {item}}}));
  CHECK(h.for_editor()[0]["result"]["items"][0]["range"] == range(0, 9, 0, 9));
  h.session.editor_says(notification("notebookDocument/didChange", splice(9, 0, {})));
  CHECK(h.for_editor()[0]["method"] == "window/showMessage");
  CHECK(methods(h.for_daemon()) == Names{"textDocument/didClose"});
}

TEST_CASE("BR-7 an editor without notebooks is offered none") {
  Harness h;
  h.session.editor_says(request(1, "initialize"));
  h.connect();
  CHECK_FALSE(h.for_editor()[0]["result"]["capabilities"].contains("notebookDocumentSync"));
}
