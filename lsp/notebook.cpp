#include "lsp/notebook.h"

#include <utility>

#include "lsp/document_fields.h"

namespace efimd::lsp {

namespace {

constexpr std::int64_t kCode = 2;  ///< NotebookCellKind

std::string notebook_uri_in(const Field& root) {
  return root.member("notebookDocument").member("uri").string(kUriBytesMax);
}

NotebookCell cell_in(const Field& field) {
  return {field.member("document").string(kUriBytesMax),
          field.member("kind").integer(0, kUintegerMax) == kCode};
}

NotebookCellArrayChange array_change_in(const Field& field) {
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint32_t>(field.member(name).integer(0, kUintegerMax));
  };
  return {number("start"), number("deleteCount"), all_of(field.member("cells"), cell_in)};
}

DidChangeTextDocumentParams text_change_in(const Field& field) {
  const Field document = field.member("document");
  return {document.member("uri").string(kUriBytesMax), version_in(document),
          changes_in(field.member("changes"))};
}

}  // namespace

std::string notebook_uri(const Json& params) {
  Reading ignored;
  const Field root(ignored, params, "params");
  return root.member("notebookDocument").member("uri").optional_string(kUriBytesMax).value_or("");
}

template <>
Result<DidOpenNotebookDocumentParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  DidOpenNotebookDocumentParams out{
      notebook_uri_in(root), all_of(root.member("notebookDocument").member("cells"), cell_in),
      all_of(root.member("cellTextDocuments"), document_in)};
  return reading.finish(std::move(out));
}

template <>
Result<DidChangeNotebookDocumentParams> params_of(const Json& params) {
  Reading reading;
  const Field root = root_of(reading, params);
  const Field cells = root.member("change").member("cells");
  const Field structure = cells.member("structure");
  DidChangeNotebookDocumentParams out;
  out.uri = notebook_uri_in(root);
  if (structure.there()) out.array = array_change_in(structure.member("array"));
  out.didOpen = all_of(structure.member("didOpen"), document_in);
  out.didClose = all_of(structure.member("didClose"), [](const Field& document) {
    return document.member("uri").string(kUriBytesMax);
  });
  out.data = all_of(cells.member("data"), cell_in);
  out.textContent = all_of(cells.member("textContent"), text_change_in);
  return reading.finish(std::move(out));
}

template <>
Result<DidCloseNotebookDocumentParams> params_of(const Json& params) {
  Reading reading;
  DidCloseNotebookDocumentParams out{notebook_uri_in(root_of(reading, params))};
  return reading.finish(std::move(out));
}

Json notebook_sync_options() {
  Json selector = Json::array();
  for (const char* scheme : {"file", "untitled"})
    selector.push_back({{"notebook", {{"scheme", scheme}}}});
  return {{"notebookSelector", std::move(selector)}};
}

}  // namespace efimd::lsp
