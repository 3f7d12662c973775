#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/text/document.h"
#include "lsp/json_rpc.h"
#include "lsp/position.h"
#include "lsp/protocol.h"

namespace efimd::service {

/// Makes one change of a didChange: positions clamp to the text.
Result<void> apply_change(text::Revision& revision,
                          const lsp::TextDocumentContentChangeEvent& change,
                          lsp::PositionEncoding encoding);

/// The editor's open documents, which the bridge keeps to open them again in a new daemon.
///
/// Thread: its owner's. Follows the daemon's own rules (positions clamp, changes apply in
/// sequence), so that both hold the same text. Ignores what the daemon refuses (malformed params,
/// changes to unopened documents). Drops a document that grows past text::kDocumentBytesMax until
/// it is opened again.
class DocumentMirror {
 public:
  /// Notes a textDocument/didOpen, didChange or didClose; ignores every other method.
  void note(const std::string& method, const lsp::Json& params, lsp::PositionEncoding encoding);
  /// The body of a didOpen notification for each document, with its current text and version, in
  /// the order of first opening.
  std::vector<std::string> reopening() const;
  std::size_t size() const { return documents_.size(); }

 private:
  struct Open {
    std::uint64_t order = 0;
    std::string language;
    std::int32_t version = 0;
    text::Document document;
  };
  void open(const lsp::Json& params);
  void change(const lsp::Json& params, lsp::PositionEncoding encoding);
  void close(const lsp::Json& params);

  std::map<std::string, Open> documents_;
  std::uint64_t opened_ = 0;
};

}  // namespace efimd::service
