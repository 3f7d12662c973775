#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lsp/json_rpc.h"
#include "lsp/position.h"

namespace efimd::lsp {

// The structures of LSP 3.18 that are in use, under LSP's own names. Unknown members are ignored.
// Absent and null members are the same if LSP lets them be absent.

inline constexpr std::size_t kUriBytesMax = 32 * 1024;
/// Documents that one editor may hold open. The daemon logs and ignores further ones; requests for
/// them get empty answers.
inline constexpr std::size_t kDocumentsMax = 4096;
/// Of more workspace folders the rest is not looked at.
inline constexpr std::size_t kWorkspaceFoldersMax = 64;
/// Of more files in one notification the rest is found by looking at whole projects.
inline constexpr std::size_t kWatchedFilesMax = 1024;
inline constexpr std::int64_t kMaxTokensMax = 4096;  ///< initializationOptions.efim.maxTokens
inline constexpr double kTemperatureMax = 10.0;

/// Zero-based; `character` counts in the negotiated encoding and may lie past the line's end.
struct Position {
  std::uint32_t line = 0;
  std::uint32_t character = 0;
  bool operator==(const Position&) const = default;
};

struct Range {
  Position start;
  Position end;
  bool operator==(const Range&) const = default;
};

enum class EfimStop { kNone, kLine, kBlock };

/// initializationOptions.efim, and settings.efim of workspace/didChangeConfiguration.
struct EfimOptions {
  std::optional<bool> receipts;
  std::optional<bool> state;     ///< efim/state is wanted
  std::optional<int> maxTokens;  ///< 1..kMaxTokensMax
  std::optional<EfimStop> stop;
  std::optional<double> temperature;  ///< 0..kTemperatureMax
  std::vector<std::string> unknown;   ///< keys that we do not know, to be reported; at most 16
};

struct ClientInfo {
  std::string name;
  std::string version;
};

struct InitializeParams {
  std::optional<std::int64_t> processId;
  ClientInfo clientInfo;
  std::optional<std::string> rootUri;
  std::vector<std::string> workspaceFolders;  ///< URIs, at most kWorkspaceFoldersMax
  std::optional<Id> workDoneToken;
  // Of `capabilities`:
  std::vector<std::string> positionEncodings;
  bool inlineCompletion = false;   ///< textDocument.inlineCompletion is there
  bool workDoneProgress = false;   ///< window.workDoneProgress
  bool registersWatchers = false;  ///< workspace.didChangeWatchedFiles.dynamicRegistration
  EfimOptions efim;
};

/// Created, changed or deleted: whoever is told looks for itself.
struct DidChangeWatchedFilesParams {
  std::vector<std::string> uris;  ///< at most kWatchedFilesMax
  bool more = false;              ///< there were more
};

struct DidChangeWorkspaceFoldersParams {
  std::vector<std::string> added, removed;  ///< URIs, at most kWorkspaceFoldersMax each
};

struct DidOpenTextDocumentParams {
  std::string uri;
  std::string languageId;
  std::int32_t version = 0;
  std::string text;
};

struct TextDocumentContentChangeEvent {
  /// nullopt: `text` is the whole document. rangeLength is deprecated and ignored.
  std::optional<Range> range;
  std::string text;
};

struct DidChangeTextDocumentParams {
  std::string uri;
  std::optional<std::int32_t> version;                         ///< may skip numbers
  std::vector<TextDocumentContentChangeEvent> contentChanges;  ///< to be applied in sequence
};

struct DidCloseTextDocumentParams {
  std::string uri;
};

enum class InlineCompletionTriggerKind { kInvoked = 1, kAutomatic = 2 };

struct SelectedCompletionInfo {
  Range range;
  std::string text;
};

struct InlineCompletionParams {
  std::string uri;
  Position position;
  InlineCompletionTriggerKind triggerKind = InlineCompletionTriggerKind::kAutomatic;
  std::optional<SelectedCompletionInfo> selectedCompletionInfo;
  /// Under it, $/progress tells what the answer begins with. LSP has it for other requests.
  std::optional<Id> partialResultToken;
  /// efim.ahead: the text has a suggestion that the user has not accepted.
  bool ahead = false;
};

/// efim/findDocument: lines that stand above and below the cursor, each a whole number of them.
struct FindDocumentParams {
  static constexpr std::size_t kBytesMax = 4096;
  /// Of a text that is found: the answer has all of it.
  static constexpr std::size_t kTextBytesMax = std::size_t{4} << 20;
  std::string above;
  std::string below;
};

struct CancelParams {
  Id id;
};

struct ExecuteCommandParams {
  std::string command;
  std::vector<Json> arguments;
};

struct DidChangeConfigurationParams {
  EfimOptions efim;  ///< empty if `settings` has no member of that name
};

// Notifications of efimd's own, which a client may leave out (docs/protocol.md).

struct EfimDidFocusParams {
  std::string uri;
};

struct EfimDidShowParams {
  std::string uri;
};

struct EfimDidDismissParams {
  std::string uri;
};

struct EfimDidPartiallyAcceptParams {
  std::string uri;
  std::int64_t acceptedLength = 0;  ///< UTF-16 code units taken of the item's insertText; >= 1
};

/// Reads a message's params. kBadInput names the field by its path ("params.position.line must be
/// ..."). Instances: the ...Params structures above.
template <class Params>
Result<Params> params_of(const Json& params);

/// The document that a message is about, also if the rest of its params cannot be read; empty if they
/// name none.
std::string document_uri(const Json& params);

struct Command {
  std::string title;
  std::string command;
  std::vector<Json> arguments;
};

struct InlineCompletionItem {
  /// Begins with the text from range.start to the cursor; line ends are "\n".
  std::string insertText;
  std::string filterText;  ///< left out if empty
  Range range;             ///< always sent: without it VS Code replaces the word under the cursor
  std::optional<Command> command;
};

Json to_json(const Position& position);
Json to_json(const Range& range);
Json to_json(const InlineCompletionItem& item);
/// An InlineCompletionList. An empty one clears what the editor shows; null leaves it (seen in
/// Neovim 0.12).
Json inline_completion_list(std::span<const InlineCompletionItem> items);

struct ServerIdentity {
  std::string name;
  std::string version;
};

/// InitializeResult. Documents are synchronized incrementally. Inline completion is advertised
/// statically, because Neovim takes no dynamic registration. `commands` are those that
/// workspace/executeCommand takes.
Json initialize_result(PositionEncoding encoding, const ServerIdentity& server,
                       std::span<const std::string> commands);

// Progress: the request window/workDoneProgress/create, then $/progress notifications with the same
// token.
/// client/registerCapability for notices of all files.
Json watch_files_params(std::string_view registration);
Json work_done_create_params(const Id& token);
Json progress_begin_params(const Id& token, std::string_view title);
/// `percentage` is clamped to 0..100.
Json progress_report_params(const Id& token, std::string_view message, int percentage);
Json progress_end_params(const Id& token, std::string_view message);
/// A part of a request's result; `token` is the request's own.
Json partial_result_params(const Id& token, std::span<const InlineCompletionItem> items);

enum class MessageType { kError = 1, kWarning = 2, kInfo = 3, kLog = 4 };
/// Of window/showMessage and window/logMessage.
Json message_params(MessageType type, std::string_view message);

}  // namespace efimd::lsp
