// A body is read or refused; what was read is written and read again as the same; every params
// reader bears it.
#include <cstdint>
#include <cstdlib>

#include "base/utf8.h"
#include "lsp/notebook.h"
#include "lsp/protocol.h"
#include "lsp/uri.h"

using namespace efimd;
using namespace efimd::lsp;

namespace {

template <class Params>
void read(const Json& params) {
  const Result<Params> read = params_of<Params>(params);
  if (!read && utf8::valid_prefix(read.error().what) != read.error().what.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = parse_message({reinterpret_cast<const char*>(data), size});
  if (!message) return 0;
  const Result<Json> again = parse_json(json_text(message->params));
  if (!again || *again != message->params) std::abort();
  read<InitializeParams>(message->params);
  read<DidOpenTextDocumentParams>(message->params);
  read<DidChangeTextDocumentParams>(message->params);
  read<DidCloseTextDocumentParams>(message->params);
  read<InlineCompletionParams>(message->params);
  read<CancelParams>(message->params);
  read<FindDocumentParams>(message->params);
  read<DidOpenNotebookDocumentParams>(message->params);
  read<DidChangeNotebookDocumentParams>(message->params);
  read<DidCloseNotebookDocumentParams>(message->params);
  read<ExecuteCommandParams>(message->params);
  read<DidChangeConfigurationParams>(message->params);
  read<EfimDidFocusParams>(message->params);
  read<EfimDidShowParams>(message->params);
  read<EfimDidDismissParams>(message->params);
  read<EfimDidPartiallyAcceptParams>(message->params);
  const std::string shown = display(message->method);
  if (utf8::valid_prefix(shown) != shown.size()) std::abort();
  return 0;
}
