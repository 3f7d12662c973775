#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "daemon/text/document.h"
#include "lsp/json_rpc.h"
#include "lsp/notebook.h"
#include "lsp/position.h"

namespace efimd::service {

/// An editor's notebooks, told to the daemon as documents (BR-7). A notebook's code cells in one language
/// are one document, in their order and with a blank line between them. So the model sees the cells
/// around the cursor's, and the KV of one cell serves the others.
///
/// The document of the Python cells of file:///a.ipynb is file:///a.ipynb#.py. The file's path decides
/// whether it may be served and stored; lsp::text_path_of() has its language.
///
/// Thread: its owner's. Positions clamp as they do in documents, and never reach into another cell.
/// Limits: kCellsMax, and text::kDocumentBytesMax of each document. A notebook past one, or with a change
/// that was not understood, is dropped until it is opened again. Messages about notebooks and cells that
/// are not open are ignored.
class Notebooks {
 public:
  static constexpr std::size_t kCellsMax = 10'000;

  /// A message to the daemon.
  struct Told {
    std::string method;
    lsp::Json params;
  };
  struct Heard {
    std::vector<Told> told;  ///< in this order
    std::string trouble;     ///< for the user; empty: none
  };
  /// Of a notebookDocument/didOpen, didChange or didClose; nothing of every other method.
  Heard note(const std::string& method, const lsp::Json& params, lsp::PositionEncoding encoding);

  /// Makes an inlineCompletion or an efim/... notification that is about a code cell one about its
  /// document, and returns the line on which the cell begins there. nullopt, and nothing changed, for
  /// every other message.
  std::optional<std::uint32_t> redirect(lsp::Message& message, std::string& body) const;
  /// The result of an inlineCompletion, for the cell that begins on this line.
  static lsp::Json lifted(lsp::Json result, std::uint32_t first_line);
  /// The daemon's result of initialize, with notebooks if the client's params have them.
  static lsp::Json offered(lsp::Json result, const lsp::Json& params);

 private:
  struct CellText {
    std::string told;  ///< its language, as the editor says
    text::Document document;
    std::string_view language() const;
  };
  struct Joined {
    text::Document document;
    std::int32_t version = 1;
  };
  struct Notebook {
    std::vector<lsp::NotebookCell> cells;
    std::unordered_map<std::string, CellText> texts;  ///< by the URI of the cell's document
    std::map<std::string, Joined> joined;             ///< by the ending of the language
  };
  /// Calls `visit(cell, text, ending)` for each code cell with a text, until it returns true.
  template <class Visit>
  static bool any_code(const Notebook& notebook, Visit visit);

  std::optional<std::uint32_t> redirect(lsp::Json& params) const;
  Result<void> open(lsp::DidOpenNotebookDocumentParams params);
  static Result<void> change(Notebook& notebook, const lsp::DidChangeNotebookDocumentParams& params,
                             lsp::PositionEncoding encoding);
  static Result<void> open_text(Notebook& notebook, const lsp::DidOpenTextDocumentParams& opened);
  static Result<void> change_text(CellText& cell, const lsp::DidChangeTextDocumentParams& changed,
                                  lsp::PositionEncoding encoding);
  /// Tells what became of the documents that the cells make.
  static Result<void> tell(const std::string& uri, Notebook& notebook,
                           lsp::PositionEncoding encoding, Heard& heard);
  void drop(const std::string& uri, Heard& heard);

  std::map<std::string, Notebook> notebooks_;
};

}  // namespace efimd::service
