#include "daemon/client/document_mirror.h"

#include <algorithm>
#include <utility>

namespace efimd::service {

namespace {

/// As the session does: past the text's end is its end, past a line's end that line's.
std::size_t byte_at(const text::Revision& revision, const lsp::Position& position,
                    lsp::PositionEncoding encoding) {
  const std::size_t begin = revision.lines().start(position.line);
  return begin + lsp::byte_of(revision.line(position.line), position.character, encoding);
}

}  // namespace

Result<void> apply_change(text::Revision& revision,
                          const lsp::TextDocumentContentChangeEvent& change,
                          lsp::PositionEncoding encoding) {
  if (!change.range) return revision.replace_all(change.text);
  const std::size_t start = byte_at(revision, change.range->start, encoding);
  const std::size_t end = byte_at(revision, change.range->end, encoding);
  return revision.replace(std::min(start, end), std::max(start, end), change.text);
}

void DocumentMirror::note(const std::string& method, const lsp::Json& params,
                          lsp::PositionEncoding encoding) {
  if (method == "textDocument/didOpen") {
    open(params);
  } else if (method == "textDocument/didChange") {
    change(params, encoding);
  } else if (method == "textDocument/didClose") {
    close(params);
  }
}

void DocumentMirror::open(const lsp::Json& params) {
  const auto opened = lsp::params_of<lsp::DidOpenTextDocumentParams>(params);
  if (!opened) return;
  documents_.erase(opened->uri);
  auto document = text::Document::open(opened->text);
  if (!document || documents_.size() >= lsp::kDocumentsMax) return;
  documents_.emplace(opened->uri,
                     Open{++opened_, opened->languageId, opened->version, std::move(*document)});
}

void DocumentMirror::change(const lsp::Json& params, lsp::PositionEncoding encoding) {
  const auto changed = lsp::params_of<lsp::DidChangeTextDocumentParams>(params);
  // What it said is unknown, so the text is not the editor's any more.
  if (!changed) return static_cast<void>(documents_.erase(lsp::document_uri(params)));
  const auto found = documents_.find(changed->uri);
  if (found == documents_.end()) return;
  text::Revision revision = found->second.document.revise();
  for (const auto& step : changed->contentChanges) {
    if (apply_change(revision, step, encoding)) continue;
    documents_.erase(found);
    return;
  }
  found->second.document.adopt(std::move(revision));
  found->second.version = changed->version.value_or(found->second.version);
}

void DocumentMirror::close(const lsp::Json& params) {
  const auto closed = lsp::params_of<lsp::DidCloseTextDocumentParams>(params);
  if (closed) documents_.erase(closed->uri);
}

std::vector<std::string> DocumentMirror::reopening() const {
  std::vector<const std::pair<const std::string, Open>*> in_order;
  for (const auto& entry : documents_) in_order.push_back(&entry);
  std::ranges::sort(in_order, {}, [](const auto* entry) { return entry->second.order; });
  std::vector<std::string> bodies;
  for (const auto* entry : in_order) {
    const Open& open = entry->second;
    bodies.push_back(lsp::notification_body("textDocument/didOpen",
                                            {{"textDocument",
                                              {{"uri", entry->first},
                                               {"languageId", open.language},
                                               {"version", open.version},
                                               {"text", open.document.snapshot()->bytes()}}}}));
  }
  return bodies;
}

}  // namespace efimd::service
