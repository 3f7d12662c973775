#include "daemon/client/notebooks.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "daemon/client/document_mirror.h"
#include "daemon/client/file_ending.h"
#include "daemon/text/cell_language.h"
#include "lsp/protocol.h"
#include "lsp/uri.h"

namespace efimd::service {

using lsp::Json;

namespace {

constexpr std::uint32_t kLinesBetween = 1;
/// Past any line's end; LSP's largest number.
constexpr std::uint32_t kLineEnd = 0x7FFF'FFFF;

std::string joined_uri(const std::string& notebook, const std::string& ending) {
  return notebook + "#." + ending;
}

Json about(const std::string& uri) {
  Json params;
  params["textDocument"]["uri"] = uri;
  return params;
}

lsp::Position position_at(const text::Snapshot& snapshot, std::size_t byte,
                          lsp::PositionEncoding encoding) {
  const std::size_t line = snapshot.lines().line_of(byte);
  const std::size_t column = byte - snapshot.lines().start(line);
  return {static_cast<std::uint32_t>(line),
          lsp::character_of(snapshot.line(line), column, encoding)};
}

/// What leads from the document's text to `text`, as contentChanges; the document has it then. Empty if
/// it had it already.
Result<Json> contents_changed(text::Document& document, std::string_view text,
                              lsp::PositionEncoding encoding) {
  const text::SnapshotPtr before = document.snapshot();
  if (Result<void> replaced = document.replace_all(text); !replaced)
    return tl::unexpected(std::move(replaced).error());
  Json changes = Json::array();
  for (const text::Edit& edit : document.snapshot()->edits_since(before->serial()).edits)
    changes.push_back({{"range", lsp::to_json(lsp::Range{
                                     position_at(*before, edit.begin, encoding),
                                     position_at(*before, edit.begin + edit.removed, encoding)})},
                       {"text", text.substr(edit.begin, edit.inserted)}});
  return changes;
}

/// In a cell of so many lines that begins on line `first` of its document.
lsp::Position moved(lsp::Position position, std::uint32_t first, std::uint32_t lines) {
  if (position.line >= lines) position = {lines - 1, kLineEnd};
  position.line += first;
  return position;
}

std::uint32_t line_count(const text::Document& document) {
  return static_cast<std::uint32_t>(document.snapshot()->lines().line_count());
}

std::string trouble_with(const std::string& uri, const std::string& why) {
  return "No completions in " + (uri.empty() ? "a notebook" : lsp::display(uri)) + ": " + why +
         "; close it and open it again";
}

Result<void> check_cells(const std::vector<lsp::NotebookCell>& cells) {
  if (cells.size() > Notebooks::kCellsMax)
    return fail(Fault::kBadInput,
                "it has more than " + std::to_string(Notebooks::kCellsMax) + " cells");
  std::unordered_set<std::string_view> uris;
  for (const lsp::NotebookCell& cell : cells)
    if (!uris.insert(cell.document).second)
      return fail(Fault::kBadInput, "two of its cells have one URI");
  return {};
}

Result<void> splice(std::vector<lsp::NotebookCell>& cells,
                    const lsp::NotebookCellArrayChange& change) {
  if (change.start > cells.size() || change.deleteCount > cells.size() - change.start)
    return fail(Fault::kBadInput, "a change is about cells that it does not have");
  const auto begin = cells.begin() + change.start;
  const auto at = cells.erase(begin, begin + change.deleteCount);
  cells.insert(at, change.cells.begin(), change.cells.end());
  return check_cells(cells);
}

}  // namespace

Notebooks::Heard Notebooks::note(const std::string& method, const Json& params,
                                 lsp::PositionEncoding encoding) {
  Heard heard;
  const std::string uri = lsp::notebook_uri(params);
  Result<void> done;
  if (method == "notebookDocument/didOpen") {
    drop(uri, heard);
    auto opened = lsp::params_of<lsp::DidOpenNotebookDocumentParams>(params);
    done = opened ? open(std::move(*opened)) : tl::unexpected(std::move(opened).error());
  } else if (method == "notebookDocument/didChange") {
    const auto found = notebooks_.find(uri);
    if (found == notebooks_.end()) return heard;
    const auto changed = lsp::params_of<lsp::DidChangeNotebookDocumentParams>(params);
    // What it said is unknown, so the cells are not the editor's any more.
    done = changed ? change(found->second, *changed, encoding) : tl::unexpected(changed.error());
  } else if (method == "notebookDocument/didClose") {
    drop(uri, heard);
  }
  if (const auto found = notebooks_.find(uri); done && found != notebooks_.end())
    done = tell(uri, found->second, encoding, heard);
  if (done) return heard;
  drop(uri, heard);
  heard.trouble = trouble_with(uri, done.error().what);
  return heard;
}

Result<void> Notebooks::open(lsp::DidOpenNotebookDocumentParams params) {
  if (notebooks_.size() >= lsp::kDocumentsMax) return {};
  if (Result<void> checked = check_cells(params.cells); !checked) return checked;
  Notebook& notebook = notebooks_[params.uri];
  notebook.cells = std::move(params.cells);
  for (const lsp::DidOpenTextDocumentParams& each : params.cellTextDocuments)
    if (Result<void> opened = open_text(notebook, each); !opened) return opened;
  return {};
}

Result<void> Notebooks::open_text(Notebook& notebook,
                                  const lsp::DidOpenTextDocumentParams& opened) {
  if (notebook.texts.size() >= kCellsMax && !notebook.texts.contains(opened.uri))
    return fail(Fault::kBadInput, "it has more than " + std::to_string(kCellsMax) + " open cells");
  auto document = text::Document::open(opened.text);
  if (!document) return tl::unexpected(std::move(document).error());
  notebook.texts.insert_or_assign(opened.uri, CellText{opened.languageId, std::move(*document)});
  return {};
}

Result<void> Notebooks::change(Notebook& notebook,
                               const lsp::DidChangeNotebookDocumentParams& params,
                               lsp::PositionEncoding encoding) {
  if (params.array)
    if (Result<void> spliced = splice(notebook.cells, *params.array); !spliced) return spliced;
  for (const std::string& uri : params.didClose) notebook.texts.erase(uri);
  for (const lsp::DidOpenTextDocumentParams& each : params.didOpen)
    if (Result<void> opened = open_text(notebook, each); !opened) return opened;
  for (const lsp::NotebookCell& data : params.data) {
    const auto cell =
        std::ranges::find(notebook.cells, data.document, &lsp::NotebookCell::document);
    if (cell != notebook.cells.end()) cell->is_code = data.is_code;
  }
  for (const lsp::DidChangeTextDocumentParams& each : params.textContent) {
    const auto text = notebook.texts.find(each.uri);
    if (text == notebook.texts.end()) continue;
    if (Result<void> changed = change_text(text->second, each, encoding); !changed) return changed;
  }
  return {};
}

Result<void> Notebooks::change_text(CellText& cell, const lsp::DidChangeTextDocumentParams& changed,
                                    lsp::PositionEncoding encoding) {
  text::Revision revision = cell.document.revise();
  for (const lsp::TextDocumentContentChangeEvent& step : changed.contentChanges)
    if (Result<void> applied = apply_change(revision, step, encoding); !applied) return applied;
  cell.document.adopt(std::move(revision));
  return {};
}

template <class Visit>
bool Notebooks::any_code(const Notebook& notebook, Visit visit) {
  return std::ranges::any_of(notebook.cells, [&](const lsp::NotebookCell& cell) {
    if (!cell.is_code) return false;
    const auto text = notebook.texts.find(cell.document);
    return text != notebook.texts.end() &&
           visit(cell, text->second, file_ending(text->second.language()));
  });
}

Result<void> Notebooks::tell(const std::string& uri, Notebook& notebook,
                             lsp::PositionEncoding encoding, Heard& heard) {
  struct Fresh {
    std::string language;
    std::string text;
  };
  std::map<std::string, Fresh> fresh;
  any_code(notebook, [&](const auto&, const CellText& cell, const std::string& ending) {
    const auto [entry, is_first] =
        fresh.try_emplace(ending, Fresh{std::string(cell.language()), {}});
    if (!is_first) entry->second.text += text::kBetweenCells;
    entry->second.text += cell.document.snapshot()->bytes();
    return entry->second.text.size() > text::kDocumentBytesMax;  // the rest changes nothing
  });
  std::erase_if(notebook.joined, [&](const auto& entry) {
    if (fresh.contains(entry.first)) return false;
    heard.told.push_back({"textDocument/didClose", about(joined_uri(uri, entry.first))});
    return true;
  });
  for (auto& [ending, now] : fresh) {
    Json params = about(joined_uri(uri, ending));
    const auto known = notebook.joined.find(ending);
    if (known == notebook.joined.end()) {
      auto document = text::Document::open(now.text);
      if (!document) return tl::unexpected(std::move(document).error());
      params["textDocument"].update(
          {{"languageId", now.language}, {"version", 1}, {"text", now.text}});
      notebook.joined.emplace(ending, Joined{std::move(*document)});
      heard.told.push_back({"textDocument/didOpen", std::move(params)});
      continue;
    }
    auto changes = contents_changed(known->second.document, now.text, encoding);
    if (!changes) return tl::unexpected(std::move(changes).error());
    if (changes->empty()) continue;
    params["textDocument"]["version"] = ++known->second.version;
    params["contentChanges"] = std::move(*changes);
    heard.told.push_back({"textDocument/didChange", std::move(params)});
  }
  return {};
}

std::string_view Notebooks::CellText::language() const {
  return text::cell_language(told, document.snapshot()->bytes());
}

void Notebooks::drop(const std::string& uri, Heard& heard) {
  const auto found = notebooks_.extract(uri);
  if (found.empty()) return;
  for (const auto& [ending, joined] : found.mapped().joined)
    heard.told.push_back({"textDocument/didClose", about(joined_uri(uri, ending))});
}

std::optional<std::uint32_t> Notebooks::redirect(Json& params) const {
  if (notebooks_.empty()) return std::nullopt;
  const std::string uri = lsp::document_uri(params);
  const auto holds = [&](const auto& entry) { return entry.second.texts.contains(uri); };
  const auto notebook = std::ranges::find_if(notebooks_, holds);
  if (notebook == notebooks_.end()) return std::nullopt;
  const std::string own = file_ending(notebook->second.texts.at(uri).language());
  std::uint32_t first = 0;
  std::uint32_t lines = 0;
  const auto is_here = [&](const auto& cell, const CellText& text, const std::string& ending) {
    if (ending != own) return false;
    lines = line_count(text.document);
    if (cell.document == uri) return true;
    first += lines + kLinesBetween;
    return false;
  };
  if (!any_code(notebook->second, is_here)) return std::nullopt;
  params["textDocument"]["uri"] = joined_uri(notebook->first, own);
  params.erase("partialResultToken");  // what it would tell has the document's lines
  const auto asked = lsp::params_of<lsp::InlineCompletionParams>(params);
  if (!asked) return first;  // it has no position, or a bad one, which the daemon refuses
  params["position"] = lsp::to_json(moved(asked->position, first, lines));
  if (const auto& selected = asked->selectedCompletionInfo)
    params["context"]["selectedCompletionInfo"]["range"] = lsp::to_json(lsp::Range{
        moved(selected->range.start, first, lines), moved(selected->range.end, first, lines)});
  return first;
}

std::optional<std::uint32_t> Notebooks::redirect(lsp::Message& message, std::string& body) const {
  const bool is_request = message.kind == lsp::Message::Kind::kRequest;
  if (is_request ? message.method != "textDocument/inlineCompletion"
                 : !message.method.starts_with("efim/"))
    return std::nullopt;
  const auto first = redirect(message.params);
  if (!first) return std::nullopt;
  body = is_request ? lsp::request_body(message.id, message.method, message.params)
                    : lsp::notification_body(message.method, message.params);
  return first;
}

Json Notebooks::lifted(Json result, std::uint32_t first_line) {
  if (!result.is_object() || !result.contains("items")) return result;
  for (Json& item : result["items"])
    for (const char* place : {"/range/start/line", "/range/end/line"}) {
      const Json::json_pointer line(place);
      if (!item.contains(line) || !item[line].is_number_integer()) continue;
      item[line] = std::max<std::int64_t>(0, item[line].get<std::int64_t>() - first_line);
    }
  return result;
}

Json Notebooks::offered(Json result, const Json& params) {
  const Json::json_pointer wanted("/capabilities/notebookDocument");
  const Json::json_pointer capabilities("/capabilities");
  if (params.contains(wanted) && params[wanted].is_object() && result.contains(capabilities) &&
      result[capabilities].is_object())
    result[capabilities]["notebookDocumentSync"] = lsp::notebook_sync_options();
  return result;
}

}  // namespace efimd::service
