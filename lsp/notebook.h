#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lsp/protocol.h"

namespace efimd::lsp {

// The structures of LSP's notebookDocument messages, as far as they are in use: cells and their texts,
// no outputs and no metadata. A Params structure has an instance of params_of().

struct NotebookCell {
  std::string document;  ///< URI of its text
  bool is_code = false;  ///< else it is markup
};

struct DidOpenNotebookDocumentParams {
  std::string uri;
  std::vector<NotebookCell> cells;
  std::vector<DidOpenTextDocumentParams> cellTextDocuments;
};

/// `deleteCount` cells from `start` on make way for `cells`.
struct NotebookCellArrayChange {
  std::uint32_t start = 0;
  std::uint32_t deleteCount = 0;
  std::vector<NotebookCell> cells;
};

/// In the order in which they apply. In the message all but the URI are members of `change.cells`.
struct DidChangeNotebookDocumentParams {
  std::string uri;
  std::optional<NotebookCellArrayChange> array;  ///< of `structure`, as the next two
  std::vector<DidOpenTextDocumentParams> didOpen;
  std::vector<std::string> didClose;  ///< URIs
  std::vector<NotebookCell> data;     ///< cells of another kind than before, or of the same
  std::vector<DidChangeTextDocumentParams> textContent;
};

struct DidCloseNotebookDocumentParams {
  std::string uri;
};

/// The notebook that a message is about, also if the rest of its params cannot be read; empty if they
/// name none.
std::string notebook_uri(const Json& params);

/// NotebookDocumentSyncOptions for notebooks in files, and those that are not saved yet.
Json notebook_sync_options();

}  // namespace efimd::lsp
