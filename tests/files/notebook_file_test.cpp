#include "daemon/files/notebook_file.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "daemon/files/project_files.h"
#include "lsp/json_rpc.h"
#include "tests/support/temp_dir.h"

using namespace efimd;
using lsp::Json;

namespace {

Json code(const Json& source) {
  return {{"cell_type", "code"},
          {"execution_count", 1},
          {"metadata", Json::object()},
          {"outputs", Json::array({{{"output_type", "stream"}, {"text", "no code = 1"}}})},
          {"source", source}};
}

Json notebook(Json cells, Json metadata = {{"language_info", {{"name", "python"}}}}) {
  return {{"cells", std::move(cells)},
          {"metadata", std::move(metadata)},
          {"nbformat", 4},
          {"nbformat_minor", 5}};
}

std::string cells_of(const Json& notebook) {
  return service::python_cells(notebook.dump(1)).value_or("none");
}

}  // namespace

TEST_CASE("a notebook's code is that of its Python cells, with a blank line between") {
  Json cells = Json::array();
  cells.push_back(code(Json::array({"import numpy as np\n", "x = 1"})));
  cells.push_back({{"cell_type", "markdown"}, {"source", "# what it does"}});
  cells.push_back(code("%%bash\nls"));
  cells.push_back(code("%%time\ny = \"\u00e9\""));
  Json other = code("select 1");
  other["metadata"]["vscode"]["languageId"] = "sql";
  cells.push_back(other);
  CHECK(cells_of(notebook(cells)) == "import numpy as np\nx = 1\n\n%%time\ny = \"\u00e9\"");
}

TEST_CASE("a notebook's language is its kernel's") {
  const Json cells = Json::array({code("x")});
  CHECK(cells_of(notebook(cells, {{"kernelspec", {{"language", "python"}}}})) == "x");
  CHECK(cells_of(notebook(cells, Json::object())) == "x");
  CHECK(cells_of(notebook(cells, {{"kernelspec", {{"language", "julia"}}}})) == "none");
  CHECK(cells_of(notebook(cells, {{"language_info", {{"name", "R"}}}})) == "none");
}

TEST_CASE("what is no notebook has no code") {
  CHECK(cells_of(notebook(Json::array())) == "none");
  CHECK(cells_of(notebook(Json::object())) == "none");
  CHECK(cells_of(notebook(Json::array({1, nullptr, code(1), code(Json::array({"x", 1}))}))) ==
        "none");
  Json older = notebook(Json::array({code("x")}));
  older["nbformat"] = 3;
  CHECK(cells_of(older) == "none");
  for (const char* const bad : {"", "[]", "null", "{\"nbformat\": 4", "{\"nbformat\":4}"})
    CHECK_FALSE(service::python_cells(bad).has_value());
  CHECK_FALSE(service::python_cells(std::string(100'000, '[')).has_value());
}

TEST_CASE("a notebook's text has the name of the document that its cells make") {
  CHECK(service::text_path("/a b.ipynb") == "/a b.ipynb.py");
  CHECK(service::text_path("/a.py") == "/a.py");
  CHECK(service::file_of_text("/a b.ipynb.py") == "/a b.ipynb");
  CHECK(service::file_of_text("/a.py") == "/a.py");
  CHECK(service::file_of_text("py") == "py");
}

TEST_CASE("a notebook is read though its outputs are larger than code, but not without bounds") {
  const test::TempDir folder;
  const auto file = folder.path() / "n.ipynb";
  Json made = notebook(Json::array({code("x = 1\r\ny = 2")}));
  const auto written = [&](std::size_t bytes) {
    made["cells"][0]["outputs"][0]["text"] = std::string(bytes, 'A');
    std::ofstream(file, std::ios::binary) << made.dump(1);
    return service::read_code(file);
  };
  CHECK(written(std::size_t{2} << 20) == "x = 1\ny = 2");
  CHECK_FALSE(written(service::kNotebookBytesMax));
}
